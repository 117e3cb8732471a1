// What a child that is the caller answers about files in the caller's home.
#include "runner/wire/user_files.hpp"

#include "common/base/channel.hpp"
#include "common/base/text.hpp"
#include "common/policy/policy_env.hpp"

#include <utility>

namespace pi_agent {

namespace {

constexpr std::size_t variables_limit = 100;

} // namespace

std::string certificate_path_inside(std::size_t number)
{
    return "/run/pi-agent/ca/" + std::to_string(number) + ".pem";
}

std::string CertificateFiles::encode() const
{
    std::vector<std::string> pairs;
    for (const auto &[name, path] : renamed)
        pairs.insert(pairs.end(), {name, path});
    return Encoder().texts(contents).texts(pairs).texts(notices).bytes();
}

CertificateFiles CertificateFiles::decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    CertificateFiles files;
    files.contents = decoder.texts(variables_limit);
    const std::vector<std::string> pairs = decoder.texts(2 * variables_limit);
    files.notices = decoder.texts(variables_limit);
    decoder.end();
    std::size_t size = 0;
    for (const auto &content : files.contents)
        size += content.size();
    bool is_sound = size <= certificates_limit && pairs.size() % 2 == 0;
    for (std::size_t index = 0; is_sound && index < pairs.size(); index += 2) {
        is_sound = false;
        for (std::size_t number = 1; number <= files.contents.size(); ++number)
            is_sound = is_sound || pairs[index + 1] == certificate_path_inside(number);
        files.renamed[pairs[index]] = pairs[index + 1];
    }
    if (!is_sound) throw ProtocolError("certificates of the user's are not what was asked for");
    return files;
}

std::string EtcFile::encode() const
{
    return Encoder().number(static_cast<std::uint64_t>(state)).text(target).text(content).bytes();
}

EtcFile EtcFile::decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    const std::uint64_t state = decoder.number();
    if (state > static_cast<std::uint64_t>(EtcFileState::too_large)) throw ProtocolError("a file of /etc is in an unknown state");
    EtcFile file{static_cast<EtcFileState>(state), decoder.text(), decoder.text()};
    decoder.end();
    return file;
}

namespace {

constexpr std::size_t answer_limit = 16UL * 1024;

} // namespace

std::string FoundIdentity::encode() const
{
    Encoder encoder;
    for (const auto &value : {identity.name, identity.email})
        encoder.number(value ? 1 : 0).text(value.value_or(""));
    return encoder.texts(identity.safe_directories).text(problem).texts(notices).bytes();
}

FoundIdentity FoundIdentity::decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    FoundIdentity found;
    for (auto *value : {&found.identity.name, &found.identity.email}) {
        const bool is_set = decoder.flag();
        std::string text = decoder.text();
        if (text.size() > answer_limit || text.find('\0') != std::string::npos) throw ProtocolError("git's answer is no name or address");
        if (is_set) *value = std::move(text);
    }
    found.identity.safe_directories = decoder.texts();
    found.problem = decoder.text();
    found.notices = decoder.texts(git_notice_limit);
    decoder.end();
    return found;
}

std::string SshFiles::encode() const
{
    return Encoder().text(key).text(known_hosts).texts(notices).bytes();
}

SshFiles SshFiles::decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    SshFiles files{decoder.text(), decoder.text(), decoder.texts(3)};
    decoder.end();
    if (files.key.size() > ssh_key_limit || files.known_hosts.size() > 2 * known_hosts_limit + 2)
        throw ProtocolError("the key of the user's is not what was asked for");
    return files;
}

SshFiles without_ssh_key(const std::string &path, const std::string &problem)
{
    return {"", "", {"ssh: the agent's git cannot use the key " + escape_for_display(path) + ": " + escape_for_display(problem)}};
}

namespace {

constexpr std::size_t variable_limit = 100'000; // entries that a child may send

} // namespace

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
    const std::vector<std::string> texts = decoder.texts(3 * variable_limit);
    decoder.end();
    if (texts.size() % 3 != 0) throw ProtocolError("a variable of a file is not complete");
    std::vector<EnvAssignment> all;
    for (std::size_t index = 0; index < texts.size(); index += 3)
        all.push_back({texts[index], texts[index + 1], texts[index + 2]});
    return all;
}

std::string HostVariables::encode() const
{
    return Encoder().text(encode_assignments(assignments)).texts(notices).bytes();
}

HostVariables HostVariables::decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    HostVariables variables{decode_assignments(decoder.text()), decoder.texts(variable_limit)};
    decoder.end();
    // What the child may send and what root puts into an environment are not the same: the child is its user's.
    for (const auto &assignment : variables.assignments)
        if (problem_of_host_env_name(assignment.name) || assignment.value.find('\0') != std::string::npos)
            throw ProtocolError("a variable of the user's files is none");
    return variables;
}

} // namespace pi_agent
