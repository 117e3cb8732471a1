// The variables that the agent starts with, including those of certificates and providers' keys.
#include "runner/plan/host_view.hpp"

#include "common/base/build_settings.hpp"
#include "runner/wire/user_files.hpp"

namespace pi_agent {

namespace {

using Layered = std::map<std::string, EnvironmentVariable>;

// What people install inside comes first, so that it wins over the host's programs. Then come the shims, then the order from outside: the
// user's directories, in the user's order, before those that all have. The agent's own directory comes last.
std::string search_path(const EnvironmentInput &input)
{
    std::vector<std::string> path;
    const auto add = [&](const std::string &directory) {
        if (std::find(path.begin(), path.end(), directory) == path.end()) path.push_back(directory);
    };
    for (const char *below :
         {"/.local/share/mise/shims", "/.local/bin", "/.local/share/npm-global/bin", "/.local/share/cargo/bin", "/.local/share/go/bin"})
        add(input.home + below);
    add(build::shim_directory);
    // In the user's order. The policy's directories come before the first of the host's own, wherever the user has that one.
    const std::vector<std::string> system = system_path();
    const auto hosts = std::find_first_of(input.user_path.begin(), input.user_path.end(), system.begin(), system.end());
    std::for_each(input.user_path.begin(), hosts, add);
    for (const auto &directory : input.path)
        add(directory.path);
    std::for_each(hosts, input.user_path.end(), add);
    std::for_each(system.begin(), system.end(), add);
    add(parent_of(input.binary));
    return joined(path, ":");
}

Environment own_variables(const EnvironmentInput &input)
{
    Environment variables = {
        {"HOME", input.home},
        {"USER", input.agent_name},
        {"LOGNAME", input.agent_name},
        {"SHELL", build::shell_path},
        {"PATH", search_path(input)},
        {"TMPDIR", input.tmpdir.empty() ? "/tmp" : input.tmpdir}, // short: a socket below it has 107 bytes for its path
        // This file sets the prefix. NPM_CONFIG_PREFIX, or a prefix in ~/.npmrc, would serve npm as well, but nvm refuses to work with
        // either.
        {"NPM_CONFIG_GLOBALCONFIG", build::npmrc_path},
        {"PI_CODING_AGENT_DIR", input.home + "/" + agent_directory},
        {"PI_AGENT_SESSION", input.session_id},
        {"PI_AGENT_VERSION", build::version},
        {"PIP_BREAK_SYSTEM_PACKAGES", "1"}, // PEP 668: the system's packages are read-only here, and --user leaves them alone
        {"SANDBOX_RUNTIME", "1"},
        {"SCREENDIR", "/tmp/screen"}, // screen(1) makes it; a session does not see /run/screen
    };
    constexpr std::pair<const char *, const char *> below_home[] = {
#include "runner/home_variables.inc"
    };
    for (const auto &[name, place] : below_home)
        variables[name] = input.home + place;
    return variables;
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

// The variables of git(1) that number settings from 0 on.
constexpr const char *git_count = "GIT_CONFIG_COUNT";
constexpr std::array<std::string_view, 2> numbered_by_git = {"GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"};

std::optional<std::size_t> git_number(const std::string &name, std::string_view prefix)
{
    return name.starts_with(prefix) ? to_number<std::size_t>(std::string_view(name).substr(prefix.size())) : std::nullopt;
}

// 0 where the count is not set or not a number.
std::size_t count_git_settings(const Layered &layered)
{
    const auto count = layered.find(git_count);
    return count == layered.end() ? 0 : to_number<std::size_t>(count->second.value).value_or(0);
}

// Two layers that both count from 0 would replace each other's settings. The product's come first, and git lets the later ones win. A layer
// that counts to 0 switches the product's off. A count that is not a number is left to git, which refuses it.
void put_git_settings_first(Layered &layered, const Layered &defaults)
{
    const std::size_t ours = count_git_settings(defaults), theirs = count_git_settings(layered);
    if (ours == 0 || (theirs == 0 && layered.contains(git_count))) return;
    Layered renumbered;
    for (const auto &prefix : numbered_by_git) {
        for (const auto &[name, variable] : layered)
            if (const auto number = git_number(name, prefix); number && *number < theirs)
                renumbered[std::string(prefix) + std::to_string(*number + ours)] = variable;
        for (std::size_t number = 0; number < ours; ++number)
            if (const auto own = defaults.find(std::string(prefix) + std::to_string(number)); own != defaults.end())
                renumbered.insert(*own);
    }
    renumbered[git_count] = {std::to_string(ours + theirs),
                             defaults.at(git_count).from + (theirs == 0 ? "" : ", and " + layered.at(git_count).from)};
    for (auto &[name, variable] : renumbered)
        layered[name] = std::move(variable);
}

// npm reads its own variable in upper and lower case.
constexpr std::string_view file_names =
    "AWS_CA_BUNDLE BUNDLE_SSL_CA_CERT CARGO_HTTP_CAINFO CURL_CA_BUNDLE DENO_CERT GIT_PROXY_SSL_CAINFO GIT_SSL_CAINFO "
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH HTTPLIB2_CA_CERTS NIX_SSL_CERT_FILE NODE_EXTRA_CA_CERTS NPM_CONFIG_CAFILE npm_config_cafile PIP_CERT "
    "REQUESTS_CA_BUNDLE SSL_CERT_FILE YARN_HTTPS_CA_FILE_PATH";
constexpr std::string_view directory_names = "GIT_SSL_CAPATH SSL_CERT_DIR"; // the latter a list with colons

} // namespace

std::vector<std::string> system_path()
{
    const auto parts = split(build::system_path, ':');
    return {parts.begin(), parts.end()};
}

std::map<std::string, EnvironmentVariable> layer_environment(const EnvironmentInput &input)
{
    Layered layered = input.defaults;
    std::erase_if(layered, [](const auto &entry) {
        return entry.first == git_count || git_number(entry.first, numbered_by_git[0]) || git_number(entry.first, numbered_by_git[1]);
    });
    for (const auto &assignment : input.presentation) {
        const std::size_t equals = assignment.find('=');
        layered[assignment.substr(0, equals)] = {assignment.substr(equals + 1), "shell"};
    }
    add(layered, input.host_files);
    add_managed(layered, input);
    put_git_settings_first(layered, input.defaults);
    for (const auto &[name, inside] : input.certificates_inside) {
        EnvironmentVariable &variable = layered[name];
        variable = {inside, variable.from + ", a copy of " + variable.value};
    }
    std::erase_if(layered, [&](const auto &entry) { return input.held_outside.contains(entry.first); });
    add(layered, own_variables(input), "pi-agent");
    if (const auto pip = layered.find("PIP_USER"); pip != layered.end() && pip->second.value == "1") // which a virtual environment refuses
        layered["BASH_ENV"] = {build::bash_env_path, "pi-agent, because PIP_USER is 1"};
    add(layered, input.gate, "pi-agent, of the session's gate");
    layered["PATH"].from += ", with what a session shows of the user's own after the shims";
    return layered;
}

std::vector<std::string> compose_environment(const EnvironmentInput &input)
{
    return mapped(layer_environment(input), [](const auto &set) { return set.first + "=" + set.second.value; });
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

bool names_certificates(std::string_view name) noexcept
{
    return has_word(file_names, name);
}

bool names_certificate_directories(std::string_view name) noexcept
{
    return has_word(directory_names, name);
}

std::vector<CertificateVariable> find_certificate_variables(const EnvironmentInput &environment)
{
    std::vector<CertificateVariable> found;
    for (const auto &[name, variable] : layer_environment(environment))
        if (!variable.value.empty() && (names_certificates(name) || names_certificate_directories(name)))
            found.push_back({name, variable.value, variable.from});
    return found;
}

std::vector<std::pair<std::string, std::string>> missed_keys(const std::vector<std::string> &kept_out, const EnvironmentInput &environment,
                                                             const std::vector<std::string> &own_files)
{
    std::vector<std::pair<std::string, std::string>> missed;
    if (kept_out.empty()) return missed;
    const Layered layered = layer_environment(environment);
    for (const auto &name : kept_out) {
        if (has_word(agent_directory_names, name))
            missed.emplace_back(name, name +
                                          " of your shell is not used: what a session reads of your config is the administrator's choice "
                                          "(users.NAME.config; pi-agentctl explain names it), and it writes in the agent's home");
        if (const auto found = layered.find(name); providers_of_key(name).empty() || environment.held_outside.contains(name) ||
                                                   (found != layered.end() && !found->second.value.empty()))
            continue;
        const std::string place = own_files.empty() ? "" : own_files.front().front() == '/' ? own_files.front() : "~/" + own_files.front();
        missed.emplace_back(name, "the agent does not get " + name +
                                      ", which your shell has: only language and terminal of the "
                                      "shell's environment reach it; " +
                                      (place.empty() ? "ask the administrator for a key of yours in env_files"
                                                     : "to give it to the agent, write " + name + "=… into " + escape_for_display(place) +
                                                           ", a file that you alone can read (mode 0600)"));
    }
    return missed;
}

std::set<std::string> providers_with_keys(const Environment &env)
{
    std::set<std::string> providers;
    for (const auto &[variable, value] : env)
        if (!value.empty())
            for (auto &provider : providers_of_key(variable))
                providers.insert(std::move(provider));
    return providers;
}

} // namespace pi_agent
