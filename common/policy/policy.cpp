// What follows from a policy without asking the host: the classes of the config directory among it.
#include "common/policy/policy.hpp"

#include "common/host/account.hpp"

#include <algorithm>

namespace pi_agent {

// The classes of the config directory: the policy's rules, then what the agent is known to do with its files.

namespace {

struct NamedClass {
    std::string_view name;
    FileClass file_class;
};

constexpr std::array class_names = {
    NamedClass{"mirror", FileClass::mirror}, NamedClass{"seed", FileClass::seed},   NamedClass{"once", FileClass::once},
    NamedClass{"agent", FileClass::agent},   NamedClass{"never", FileClass::never},
};

// By the first component of a path. Documents that both sides write, and credentials, are merged by key (runner/as_agent/documents.hpp):
// seed says that what was changed inside survives.
constexpr std::array default_classes = {
    NamedClass{"settings.json", FileClass::seed}, NamedClass{"auth.json", FileClass::seed},
    NamedClass{"mcp-auth.json", FileClass::seed}, NamedClass{"trust.json", FileClass::seed},
    NamedClass{"bin", FileClass::once},           NamedClass{"git", FileClass::once},
    NamedClass{"npm", FileClass::once},           NamedClass{"sessions", FileClass::agent},
    NamedClass{"crashes.json", FileClass::agent}, NamedClass{"models-store.json", FileClass::agent},
    NamedClass{"tmp", FileClass::never},
};

FileClass default_class(std::string_view top) noexcept
{
    const auto *const found =
        std::find_if(default_classes.begin(), default_classes.end(), [top](const NamedClass &known) { return known.name == top; });
    if (found != default_classes.end()) return found->file_class;
    if (top.ends_with(".lock") || top.starts_with("mcp-auth-refresh-")) return FileClass::never;
    return top.ends_with(".log") ? FileClass::agent : FileClass::mirror;
}

} // namespace

std::optional<FileClass> parse_file_class(std::string_view text) noexcept
{
    for (const auto &known : class_names)
        if (known.name == text) return known.file_class;
    return std::nullopt;
}

std::string_view to_string(FileClass file_class) noexcept
{
    return class_names[static_cast<std::size_t>(file_class)].name;
}

bool is_copied(FileClass file_class) noexcept
{
    return file_class == FileClass::mirror || file_class == FileClass::seed || file_class == FileClass::once;
}

std::map<std::string, FileClass, std::less<>>::const_iterator ConfigClasses::rule_of(std::string_view path) const
{
    for (std::string_view part = path; !rules_.empty();) {
        if (const auto found = rules_.find(part); found != rules_.end()) return found;
        const std::size_t slash = part.rfind('/');
        if (slash == std::string_view::npos) break;
        part = part.substr(0, slash);
    }
    return rules_.end();
}

FileClass ConfigClasses::of(std::string_view path) const
{
    const auto rule = rule_of(path);
    return rule != rules_.end() ? rule->second : default_class(path.substr(0, path.find('/')));
}

std::string ConfigClasses::whole_of(std::string_view path) const
{
    const auto top = path.substr(0, path.find('/'));
    if (top == "sessions") return std::string(path);
    const auto rule = rule_of(path);
    return rule != rules_.end() ? rule->first : std::string(top);
}

bool ConfigClasses::copies_below(std::string_view path) const
{
    if (is_copied(of(path))) return true;
    const std::string beginning = std::string(path) + "/";
    for (auto rule = rules_.lower_bound(beginning); rule != rules_.end() && rule->first.starts_with(beginning); ++rule)
        if (is_copied(rule->second)) return true;
    return false;
}

std::optional<FileClass> ConfigClasses::of_all(std::string_view path) const
{
    if (path.empty()) return std::nullopt;
    const FileClass own = of(path);
    const std::string beginning = std::string(path) + "/";
    for (auto rule = rules_.lower_bound(beginning); rule != rules_.end() && rule->first.starts_with(beginning); ++rule)
        if (rule->second != own) return std::nullopt;
    return own;
}

// What follows from a policy without asking the host.

std::string entry_key(const UserEntry &entry)
{
    return std::string(entry.is_group ? "users.%" : "users.") + entry.name;
}

std::string root_key(const UserEntry &entry, const RootSpec &root)
{
    return entry_key(entry) + ".roots[" + std::to_string(root.index) + "]";
}

const char *to_string(SandboxMethod method)
{
    constexpr std::array<const char *, 5> names = {"systemd", "bwrap", "podman", "docker", "none"};
    return names.at(static_cast<std::size_t>(method));
}

const std::vector<ProviderRule> &routed_providers(const Policy &policy) noexcept
{
    static const std::vector<ProviderRule> none;
    return policy.network.mode == NetworkMode::hosts && policy.network.reaches_providers ? policy.providers : none;
}

bool has_unit(SandboxMethod method) noexcept
{
    return method != SandboxMethod::bwrap;
}

std::string agent_account_name(const Policy &policy, const std::string &user, const std::optional<std::string> &run_as)
{
    if (run_as) return *run_as;
    return policy.agent.accounts == Accounts::per_user ? policy.agent.user + "-" + user : policy.agent.user;
}

std::string agents_home(const std::string &state_dir, const std::string &user)
{
    return state_dir + "/users/" + user + "/home";
}

bool can_be_created(const std::string &account) noexcept
{
    return is_plain_name(account) && account.size() <= creatable_length && account.find('.') == std::string::npos;
}

bool has_agents_name(const Policy &policy, const std::string &name)
{
    if (name == policy.agent.user) return true;
    return policy.agent.accounts == Accounts::per_user && name.starts_with(policy.agent.user + "-") && !policy.people.contains(name);
}

bool is_agent_account(const Policy &policy, const std::string &name)
{
    const auto runs_as_name = [&name](const UserEntry &entry) { return entry.run_as == name; };
    return has_agents_name(policy, name) || std::any_of(policy.users.begin(), policy.users.end(), runs_as_name);
}

} // namespace pi_agent
