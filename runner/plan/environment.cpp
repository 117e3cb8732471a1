// The agent's environment, layer by layer.
#include "runner/plan/environment.hpp"

#include "common/base/build_settings.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/defence.hpp"
#include "runner/wire/sync_messages.hpp"

#include <sstream>

namespace pi_agent {

namespace {

using Layered = std::map<std::string, EnvironmentVariable>;

// What people install inside comes first, so that it wins over the host's; then the shims; the agent's own directory comes last. The shells
// and package managers write below the home, nothing else is writable for good.
std::string search_path(const EnvironmentInput &input)
{
    std::string path;
    for (const char *below : {"/.local/share/mise/shims", "/.local/bin", "/.local/share/npm-global/bin", "/.local/share/cargo/bin"})
        path += input.home + below + ":";
    return path + build::shim_directory + ":" + build::system_path + ":" + parent_of(input.binary);
}

Environment own_variables(const EnvironmentInput &input)
{
    const std::string &home = input.home;
    return {
        {"HOME", home},
        {"USER", input.agent_name},
        {"LOGNAME", input.agent_name},
        {"SHELL", build::shell_path},
        {"PATH", search_path(input)},
        {"TMPDIR", input.tmpdir.empty() ? tmpdir_of(input.session_id) : input.tmpdir},
        {"BASH_ENV", build::bash_env_path},
        {"XDG_CONFIG_HOME", home + "/.config"},
        {"XDG_CACHE_HOME", home + "/.cache"},
        {"XDG_DATA_HOME", home + "/.local/share"},
        {"XDG_STATE_HOME", home + "/.local/state"},
        {"PYTHONUSERBASE", home + "/.local"},
        {"PIP_USER", "1"},
        {"PIP_BREAK_SYSTEM_PACKAGES", "1"}, // PEP 668: the system's packages are read-only here, and --user leaves them alone
        {"NPM_CONFIG_PREFIX", home + "/.local/share/npm-global"},
        {"GOPATH", home + "/.local/share/go"},
        {"GOBIN", home + "/.local/bin"},
        {"CARGO_HOME", home + "/.local/share/cargo"},
        {"RUSTUP_HOME", home + "/.local/share/rustup"},
        {"NODE_COMPILE_CACHE", home + "/.cache/node-compile-cache"}, // the agent starts a quarter faster with it
        {"PI_CODING_AGENT_DIR", home + "/" + agent_directory},
        {"PI_AGENT_SESSION", input.session_id},
        {"PI_AGENT_VERSION", build::version},
        {"SANDBOX_RUNTIME", "1"},
    };
}

void add(Layered &layered, const Environment &layer, const std::string &from)
{
    for (const auto &[name, value] : layer)
        layered[name] = {value, from};
}

void add(Layered &layered, const std::vector<EnvAssignment> &layer)
{
    for (const auto &assignment : layer)
        layered[assignment.name] = {assignment.value, assignment.where};
}

void add_managed(Layered &layered, const EnvironmentInput &input)
{
    add(layered, input.managed, "env");
    add(layered, input.managed_files);
    add(layered, input.per_user, "users.*.env");
}

} // namespace

std::string tmpdir_of(const std::string &session_id)
{
    return defence_is_on("unique-scratch") ? "/tmp/pi-agent-" + session_id : "/tmp/pi-agent";
}

std::vector<std::string> system_path()
{
    std::vector<std::string> directories;
    std::istringstream path(build::system_path);
    for (std::string directory; std::getline(path, directory, ':');)
        directories.push_back(directory);
    return directories;
}

std::map<std::string, EnvironmentVariable> layer_environment(const EnvironmentInput &input)
{
    Layered layered = input.defaults;
    for (const auto &assignment : input.presentation) {
        const std::size_t equals = assignment.find('=');
        layered[assignment.substr(0, equals)] = {assignment.substr(equals + 1), "shell"};
    }
    add(layered, input.host_files);
    add_managed(layered, input);
    for (const auto &[name, inside] : input.certificates_inside) {
        EnvironmentVariable &variable = layered[name];
        variable = {inside, variable.from + ", a copy of " + variable.value};
    }
    add(layered, own_variables(input), "pi-agent");
    return layered;
}

std::vector<std::string> compose_environment(const EnvironmentInput &input)
{
    std::vector<std::string> list;
    for (const auto &[name, variable] : layer_environment(input))
        list.push_back(name + "=" + variable.value);
    return list;
}

Environment managed_environment(const EnvironmentInput &input)
{
    Layered layered;
    add_managed(layered, input);
    Environment managed;
    for (const auto &[name, variable] : layered)
        managed[name] = variable.value;
    return managed;
}

} // namespace pi_agent
