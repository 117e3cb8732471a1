// What a child that is the caller answers about files in the caller's home.
#include "runner/wire/user_files.hpp"

#include "common/base/text.hpp"
#include "common/policy/policy_env.hpp"

#include <algorithm>
#include <set>

namespace pi_agent {

std::string certificate_path_inside(std::size_t number)
{
    return "/run/pi-agent/ca/" + std::to_string(number) + ".pem";
}

bool CertificateFiles::is_sound() const
{
    std::size_t size = 0;
    std::set<std::string> paths;
    for (const auto &content : contents) {
        size += content.size();
        paths.insert(certificate_path_inside(paths.size() + 1));
    }
    return size <= certificates_limit &&
           std::all_of(renamed.begin(), renamed.end(), [&](const auto &one) { return paths.contains(one.second); });
}

SshFiles without_ssh_key(const std::string &path, const std::string &problem)
{
    return {"", "", {"ssh: the agent's git cannot use the key " + escape_for_display(path) + ": " + escape_for_display(problem)}};
}

std::string encode_assignments(const std::vector<EnvAssignment> &assignments)
{
    std::vector<std::string> texts;
    for (const auto &[name, value, where] : assignments)
        texts.insert(texts.end(), {name, value, where});
    return Encoder().texts(texts).bytes();
}

std::vector<EnvAssignment> decode_assignments(std::string_view bytes)
{
    Decoder decoder(bytes);
    const std::vector<std::string> texts = decoder.texts(3 * variables_limit);
    decoder.end();
    if (texts.size() % 3 != 0) throw ProtocolError("a variable of a file is not complete");
    std::vector<EnvAssignment> all;
    for (std::size_t index = 0; index < texts.size(); index += 3)
        all.push_back({texts[index], texts[index + 1], texts[index + 2]});
    return all;
}

bool HostVariables::are_the_users() const
{
    return std::none_of(assignments.begin(), assignments.end(), [](const EnvAssignment &one) {
        return problem_of_host_env_name(one.name) || one.value.find('\0') != std::string::npos;
    });
}

} // namespace pi_agent
