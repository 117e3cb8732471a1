// Rules for the text of paths and names of system calls in a policy.
#include "common/policy/policy_paths.hpp"

#include "common/policy/policy.hpp"
#include "common/seams/seams.hpp"

#include <fnmatch.h>

namespace pi_agent {

namespace {

TextProblem odd_component()
{
    return {"holds '//', '.' or '..'", "write the path without them"};
}

// systemd splits paths at a colon.
bool fits_unit(std::string_view path)
{
    return is_property_safe(path) && path.find(':') == std::string_view::npos;
}
constexpr const char *beyond_alphabet = "holds a character other than A-Z a-z 0-9 / _ . = @ -";

// Absolute, or below the home.
std::optional<TextProblem> problem_from_home(const std::string &path)
{
    if (path.front() == '~') return TextProblem{"begins with '~'", "a path without '/' in front is relative to the user's home already"};
    return has_odd_component(std::string_view(path).substr(path.front() == '/' ? 1 : 0)) ? std::optional(odd_component()) : std::nullopt;
}

template <std::size_t count>
bool lies_in_one(const std::string &path, const std::array<std::string_view, count> &places)
{
    return std::any_of(places.begin(), places.end(), [&path](std::string_view place) { return is_within(path, place); });
}

// A session has its own at these places, or nothing at all, whatever the host has there.
constexpr std::array<std::string_view, 10> unshown = {"/proc", "/sys",     "/dev",  "/run",  "/var/run",
                                                      "/tmp",  "/var/tmp", "/home", "/root", default_state_dir};

// Agents' own directories hold keys, too, and are what this key is for.
std::optional<TextProblem> problem_of_config_secrets(const std::string &path)
{
    constexpr std::array<std::string_view, 4> of_agents = {".pi", ".agents", ".claude", ".codex"};
    const bool absolute = path.front() == '/';
    auto problem = absolute ? problem_of_secrets_anywhere(path) : problem_of_secrets(path);
    if (!problem || (!absolute && lies_in_one(path, of_agents))) return std::nullopt;
    if (absolute)
        for (const auto agents : of_agents)
            if ((path + "/").find("/" + std::string(agents) + "/") != std::string::npos) return std::nullopt;
    problem->remedy = "name the agent's config directory, e.g. .pi/agent";
    return problem;
}

// Why a policy cannot let a call through. Words.
struct RefusedCalls {
    std::string_view names;
    const char *why;
    const char *remedy;
};
constexpr const char *take_it_out = "remove it";
constexpr RefusedCalls never_allowed[] = {
#include "common/never_allowed.inc"
};

template <typename Calls>
bool has_call(const Calls &calls, const std::string &name)
{
    return std::any_of(std::begin(calls), std::end(calls), [&](const auto &call) { return name == call.name; });
}

std::vector<std::string_view> names_to_deny()
{
    std::set<std::string_view> groups;
    std::vector<std::string_view> names;
    for (const auto &call : deniable_calls) {
        names.emplace_back(call.name);
        if (*call.group != '\0') groups.insert(call.group);
    }
    names.insert(names.end(), groups.begin(), groups.end());
    return names;
}

} // namespace

// --- Paths in a policy, judged by their text alone.

std::optional<TextProblem> problem_of_absolute(const std::string &path)
{
    if (path.front() != '/') return TextProblem{"is not absolute", "begin it with '/'"};
    return has_odd_component(std::string_view(path).substr(1)) ? std::optional(odd_component()) : std::nullopt;
}

std::optional<TextProblem> problem_of_root(const std::string &path)
{
    if (path == "/") return TextProblem{"is the whole file system", "name the directory of a project, or one that holds projects"};
    if (path == "~") return TextProblem{"is a home directory itself", "name a directory below it, e.g. ~/projects"};
    const bool below_home = path.substr(0, 2) == "~/";
    if (!below_home && path.front() == '~') return TextProblem{"names another user's home", "write it as an absolute path"};
    if (!below_home && path.front() != '/') return TextProblem{"is not absolute", "begin it with '/' or '~/'"};
    const auto rest = std::string_view(path).substr(below_home ? 2 : 1);
    if (has_odd_component(rest)) return odd_component();
    if (auto problem = below_home ? problem_of_secrets(rest) : problem_of_secrets_anywhere(path); problem && defence_is_on("root-secrets"))
        return problem;
    return problem_of_place(path);
}

std::optional<TextProblem> problem_of_root_in_unit(const std::string &path)
{
    if (fits_unit(std::string_view(path).substr(path.starts_with("~/") ? 2 : 0))) return std::nullopt;
    return TextProblem{beyond_alphabet, "rename the directory, name one above it, or show projects under an alias (projects.paths: alias)"};
}

std::string with_users_name(std::string path, std::string_view name)
{
    for (std::size_t at = path.find(users_name); at != std::string::npos; at = path.find(users_name, at + name.size()))
        path.replace(at, users_name.size(), name);
    return path;
}

std::optional<TextProblem> problem_of_place(const std::string &path)
{
    // Nothing at or below these.
    constexpr std::array<std::string_view, 7> closed = {"/proc", "/sys", "/dev", "/run", "/boot", "/etc", default_state_dir};
    // These hold what is closed, or everybody's files.
    constexpr std::string_view too_much = "/usr /opt /var /var/lib /home /tmp /var/tmp";
    if (lies_in_one(path, closed)) return TextProblem{"belongs to the system", "name a directory of projects"};
    if (has_word(too_much, path)) return TextProblem{"holds more than projects", "name a directory below it"};
    return std::nullopt;
}

std::optional<TextProblem> problem_of_state_dir(const std::string &path)
{
    // Every session sees these, read-only, or the host keeps other things there.
    constexpr std::array<std::string_view, 12> taken = {"/usr",   "/opt", "/bin",    "/sbin", "/lib",  "/lib32",
                                                        "/lib64", "/nix", "/libx32", "/etc",  "/boot", "/var/log"};
    constexpr std::string_view too_much = "/ /srv /mnt /media /var /var/lib /var/cache /var/spool";
    const std::string remedy = "name a directory of its own, e.g. /srv/agents";
    if (path == default_state_dir) return std::nullopt;
    if (path.front() != '/') return TextProblem{"is not absolute", "begin it with '/'"};
    if (has_word(too_much, path)) return TextProblem{"holds more than agents' homes", remedy};
    if (has_odd_component(std::string_view(path).substr(1))) return odd_component();
    if (!fits_unit(path)) return TextProblem{beyond_alphabet, remedy};
    if (lies_in_one(path, unshown) || lies_in_one(path, taken) || lies_in_one(path, package_data))
        return TextProblem{"lies where the system or sessions have other things", remedy};
    return std::nullopt;
}

std::optional<TextProblem> problem_beside_state(const std::string &path, const std::string &state_dir)
{
    if (!are_nested(path, state_dir)) return std::nullopt;
    return TextProblem{"holds the agents' homes (agent.state_dir: " + state_dir + "), or is in them", "keep the two apart"};
}

std::optional<TextProblem> problem_of_config_directory(const std::string &path)
{
    if (path == "/") return TextProblem{"is the whole file system", "name the agent's config directory, e.g. .pi/agent"};
    const auto problem = problem_from_home(path);
    return problem ? problem : problem_of_config_secrets(path);
}

std::optional<TextProblem> problem_of_host_file(const std::string &path)
{
    if (path.back() == '/') return TextProblem{"is a directory", "name a file in it"};
    return problem_from_home(path);
}

std::optional<TextProblem> problem_of_managed_file(const std::string &path)
{
    if (path.front() != '/') return TextProblem{"is not absolute", "begin it with '/'"};
    return problem_of_host_file(path);
}

std::optional<TextProblem> problem_of_config_path(const std::string &path)
{
    if (path.empty() || path.front() == '/' || path.front() == '~')
        return TextProblem{"is not relative to the config directory", "write it as 'extensions' or 'npm/cache'"};
    return has_odd_component(path) ? std::optional(odd_component()) : std::nullopt;
}

std::optional<TextProblem> problem_of_project_path(const std::string &path)
{
    if (path.front() == '/' || path.front() == '~')
        return TextProblem{"is not relative to the project", "write it as '.env' or 'deploy/keys'"};
    return has_odd_component(path) ? std::optional(odd_component()) : std::nullopt;
}

std::optional<TextProblem> problem_of_protected_path(const std::string &path)
{
    const bool is_directory = path.size() > 1 && path.back() == '/';
    return problem_of_project_path(is_directory ? path.substr(0, path.size() - 1) : path);
}

std::optional<TextProblem> problem_of_view_path(const std::string &path)
{
    constexpr std::string_view too_much = "/ /etc /media /mnt /srv /var /var/lib";
    if (auto problem = path == "/" ? std::nullopt : problem_of_absolute(path)) return problem;
    if (path == "/etc") return TextProblem{"is all of the host's configuration", "use 'view: host', or name what is needed of it"};
    if (has_word(too_much, path)) return TextProblem{"holds files that the agent must not see", "name a directory below it"};
    if (lies_in_one(path, unshown))
        return TextProblem{"is kept from every session", "put what the agent needs below /usr, /opt or /srv, or make it a root"};
    return std::nullopt;
}

std::optional<TextProblem> problem_of_shared_data(const std::string &path)
{
    if (path.find(users_name) != std::string::npos) return problem_of_shared_data(with_users_name(path, "user"));
    const auto problem = problem_of_view_path(path);
    return problem ? problem : problem_of_place(path);
}

std::string written_home_path(const std::string &path)
{
    return path.starts_with('/') ? path : "~/" + path;
}

std::optional<TextProblem> problem_of_program_directory(const std::string &path)
{
    if (path.find(':') != std::string::npos)
        return TextProblem{"holds a colon, which separates directories in PATH", "rename the directory"};
    return problem_of_view_path(path);
}

std::optional<TextProblem> problem_of_device(const std::string &path)
{
    // `own`: every session has its own. `closed`: the host's memory, disks, keyboards, consoles, processors and chips, by the beginning of
    // their names.
    constexpr std::string_view own = "console fd full log mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero";
    constexpr std::string_view closed =
        "autofs block bsg btrfs-control bus char core cpu disk dm- fd0 fuse hugepages initctl input ipmi kmem kmsg loop mapper md mei mem "
        "mcelog ng nvme nvram pmem port raw sd sg snapshot sr tpm uinput userfaultfd vcs vd vfio vhost watchdog xvd zram zd";
    if (path == nvidia_devices) return std::nullopt;
    if (!path.starts_with("/dev/")) return TextProblem{"does not lie below /dev", "name a device, e.g. /dev/kvm or /dev/dri, or 'nvidia'"};
    const std::string below = path.substr(5);
    if (has_odd_component(below)) return odd_component();
    if (!fits_unit(path)) return TextProblem{beyond_alphabet, "name the device by another of its names"};
    if (has_word(own, below.substr(0, below.find('/')))) return TextProblem{"is each session's own", "take it out of the list"};
    const auto beginnings = split(closed, ' ');
    const bool is_closed = std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view one) { return below.starts_with(one); });
    const bool is_console = below.starts_with("tty") && below.size() > 3 && below[3] >= '0' && below[3] <= '9';
    if (is_closed || is_console)
        return TextProblem{"opens the host itself: its memory, disks, consoles or keyboards", "name a device that does not"};
    return std::nullopt;
}

std::optional<TextProblem> problem_of_binary(const std::string &path)
{
    if (auto problem = problem_of_absolute(path)) return problem;
    if (!is_property_safe(path))
        return TextProblem{"holds a character other than A-Z a-z 0-9 / _ . : = @ -", "install the agent under another name"};
    if (path.rfind('/') == 0) return TextProblem{"is not a program in a directory of its own", "name the program, e.g. /opt/pi/bin/pi"};
    if (lies_in_one(path, unshown)) return TextProblem{"is kept from every session", "install the agent below /usr, /opt or /srv"};
    return std::nullopt;
}

std::optional<TextProblem> problem_of_job_word(const std::string &text)
{
    constexpr std::size_t limit = 255;
    constexpr const char *alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-,:@+=/&|*()[]";
    if (text.front() == '-') return TextProblem{"begins with '-'", "write it as 'sinfo' or 'sacctmgr' does"};
    if (text.size() > limit || text.find_first_not_of(alphabet) != std::string::npos)
        return TextProblem{"is nothing that Slurm has a name for", "write it as 'sinfo' or 'sacctmgr' does, without spaces"};
    return std::nullopt;
}

bool is_masked_by(const std::string &pattern, const std::string &path)
{
    if (pattern.starts_with("**/")) {
        std::size_t at = 0;
        do {
            if (fnmatch(pattern.c_str() + 3, path.c_str() + at, FNM_PATHNAME) == 0) return true;
            at = path.find('/', at) + 1;
        } while (at != 0);
        return false;
    }
    const std::string name = pattern.find('/') == std::string::npos ? path.substr(path.rfind('/') + 1) : path;
    return fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME) == 0;
}

// --- The rules for names of system calls in a policy, and what its lists come to.

std::optional<TextProblem> problem_of_denied_call(const std::string &name)
{
    const auto names = names_to_deny();
    if (std::find(names.begin(), names.end(), name) != names.end()) return std::nullopt;
    if (has_call(allowable_calls, name)) return TextProblem{"is refused in every session", take_it_out};
    for (const auto &calls : never_allowed)
        if (has_word(calls.names, name)) return TextProblem{"is refused in every session, or decided by hardening.tracing", take_it_out};
    return TextProblem{"is not a system call or group that a policy can refuse: sessions do not make it, or no program runs without it" +
                           did_you_mean(name, names),
                       "name one of those in docs/reference/session-calls.md"};
}

std::optional<TextProblem> problem_of_allowed_call(const std::string &name)
{
    if (has_call(allowable_calls, name)) return std::nullopt;
    for (const auto &calls : never_allowed)
        if (has_word(calls.names, name)) return TextProblem{calls.why, calls.remedy};
    if (!name.empty() && name.front() == '@') return TextProblem{"is a group, and calls are allowed one by one", "name its calls"};
    if (has_call(deniable_calls, name)) return TextProblem{"is a call that sessions make anyway", take_it_out};
    std::vector<std::string_view> names;
    std::string list;
    for (const auto &call : allowable_calls) {
        names.emplace_back(call.name);
        list += (list.empty() ? "" : ", ") + std::string(call.name);
    }
    return TextProblem{"is not a call that a policy can allow" + did_you_mean(name, names), "name some of " + list};
}

std::optional<TextProblem> problem_of_address_family(const std::string &name)
{
    const std::vector<std::string_view> names(std::begin(address_families), std::end(address_families));
    if (std::find(names.begin(), names.end(), name) != names.end()) return std::nullopt;
    return TextProblem{"is not a kind of socket that a session can have: others would go around the policy's network" +
                           did_you_mean(name, names),
                       "name some of unix, inet, inet6, netlink"};
}

std::vector<std::string> denied_calls_of(const CallsPolicy &calls)
{
    std::set<std::string> names;
    for (const auto &said : calls.denied)
        for (const auto &call : deniable_calls)
            if (said.path == call.name || said.path == call.group) names.insert(call.name);
    return {names.begin(), names.end()};
}

std::vector<std::string> allowed_calls_of(const CallsPolicy &calls)
{
    std::set<std::string> names;
    for (const auto &said : calls.allowed)
        names.insert(said.path);
    return {names.begin(), names.end()};
}

bool is_allowed_call(const CallsPolicy &calls, std::string_view name)
{
    return std::any_of(calls.allowed.begin(), calls.allowed.end(), [&](const PolicyPath &said) { return said.path == name; });
}

unsigned address_families_of(const CallsPolicy &calls)
{
    if (calls.families.empty()) return all_address_families;
    unsigned set = 0;
    for (std::size_t index = 0; index < std::size(address_families); ++index)
        if (std::any_of(calls.families.begin(), calls.families.end(),
                        [&](const PolicyPath &said) { return said.path == address_families[index]; }))
            set |= 1U << index;
    return set;
}

} // namespace pi_agent
