// The agent's environment, layer by layer.
#include "runner/environment.hpp"

#include "build_config.hpp"
#include "runner/writer.hpp"

namespace pi_agent {

namespace {

std::string directory_of(const std::string &path)
{
    return path.substr(0, path.rfind('/'));
}

Environment own_variables(const EnvironmentInput &input)
{
    return {
        {"HOME", input.home},
        {"USER", input.agent_name},
        {"LOGNAME", input.agent_name},
        {"SHELL", "/bin/bash"},
        // The agent's own directory comes last: the host's tools win.
        {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:" + directory_of(input.binary)},
        {"TMPDIR", "/tmp"}, // private to the unit
        {"PI_CODING_AGENT_DIR", input.home + "/" + agent_directory},
        {"PI_AGENT_SESSION", input.session_id},
        {"PI_AGENT_VERSION", PI_AGENT_VERSION_TEXT},
        {"SANDBOX_RUNTIME", "1"},
    };
}

} // namespace

std::vector<std::string> compose_environment(const EnvironmentInput &input)
{
    Environment merged;
    for (const auto &assignment : input.presentation) {
        const std::size_t equals = assignment.find('=');
        merged[assignment.substr(0, equals)] = assignment.substr(equals + 1);
    }
    for (const Environment &layer : {input.managed, input.per_user, own_variables(input)})
        for (const auto &[name, value] : layer)
            merged[name] = value;
    std::vector<std::string> list;
    list.reserve(merged.size());
    for (const auto &[name, value] : merged)
        list.push_back(name + "=" + value);
    return list;
}

} // namespace pi_agent
