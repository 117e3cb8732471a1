// The fields of variables.
#include "runner/wire/host_variables.hpp"

#include "common/base/channel.hpp"
#include "common/policy/policy_env.hpp"

namespace pi_agent {

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
