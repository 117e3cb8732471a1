// Rules for the text of paths and names of system calls in a policy, and the directories of homes that sessions see.
#pragma once

#include "common/base/text.hpp"

namespace pi_agent {

// --- Rules for the text of paths in a policy. A child with the user's rights later checks what they are on the host.

// What packages keep for their programs outside of /usr, where these look for it: lists of packages, formats of TeX, dictionaries,
// catalogs, gems, fonts, makers of hardware. Every session sees them read-only, where the host has them and only root can change them.
inline constexpr std::array<std::string_view, 12> package_data = {
    "/var/cache/fontconfig", "/var/lib/aspell",      "/var/lib/dictionaries-common", "/var/lib/dpkg",   "/var/lib/gems",
    "/var/lib/ghc",          "/var/lib/ghostscript", "/var/lib/ieee-data",           "/var/lib/ispell", "/var/lib/sgml-base",
    "/var/lib/texmf",        "/var/lib/xml-core"};

// A project root: absolute, or starting with "~/".
std::optional<TextProblem> problem_of_root(const std::string &path);

// A root that is shown at its own path: its bytes reach unit properties, so it has their alphabet (design rule 2).
std::optional<TextProblem> problem_of_root_in_unit(const std::string &path);

// A canonical path that cannot be a project: system directories, kernel file systems, and the agents' state, which an agent may reach only
// through its home.
std::optional<TextProblem> problem_of_place(const std::string &path);

// Where the agents' homes are: its text reaches unit properties, and no session sees anything else there.
std::optional<TextProblem> problem_of_state_dir(const std::string &path);

// A canonical path that sessions see, beside the agents' state: neither holds the other.
std::optional<TextProblem> problem_beside_state(const std::string &path, const std::string &state_dir);

// A config directory: absolute, or relative to the home. Opened only with the user's rights, so any printable name is fine.
std::optional<TextProblem> problem_of_config_directory(const std::string &path);

// A path inside the config directory, relative to it.
std::optional<TextProblem> problem_of_config_path(const std::string &path);

// Whether `projects.mask` covers a path below the top of a project. A pattern without '/' is compared with each name, any other with the
// path (fnmatch(3)). Only a '/' in the pattern matches a '/', but "**/" in front stands for any directories, or none.
bool is_masked_by(const std::string &pattern, const std::string &path);

// A path inside a project, or a pattern of such paths, relative to it.
std::optional<TextProblem> problem_of_project_path(const std::string &path);

// The same, with a '/' at its end for a directory.
std::optional<TextProblem> problem_of_protected_path(const std::string &path);

// A user's file of variables: absolute, or relative to the home.
std::optional<TextProblem> problem_of_host_file(const std::string &path);

// A file that belongs to root: absolute.
std::optional<TextProblem> problem_of_managed_file(const std::string &path);

// A path of the host to show to the agent, as written or resolved: absolute.
std::optional<TextProblem> problem_of_view_path(const std::string &path);

// The same for an entry of PATH.
std::optional<TextProblem> problem_of_program_directory(const std::string &path);

// Stands in a root for the name of the user who starts there: "/scratch/{user}".
inline constexpr std::string_view users_name = "{user}";
std::string with_users_name(std::string path, std::string_view name);

// A device node or a directory of them, below /dev; or nvidia_devices, for all devices of that driver.
constexpr const char *nvidia_devices = "nvidia";
std::optional<TextProblem> problem_of_device(const std::string &path);

// The agent's program.
std::optional<TextProblem> problem_of_binary(const std::string &path);

// Any absolute path.
std::optional<TextProblem> problem_of_absolute(const std::string &path);

// What a job asks Slurm for: the name of a partition, account or quality of service, or an expression of features.
std::optional<TextProblem> problem_of_job_word(const std::string &text);

// --- Which directories of a user's home sessions show to the tools inside: the default lists, where they appear inside, and what is never
// shown (toolchains.cpp).

// Relative to the user's home: programs and their configuration, read-only inside.
const std::vector<std::string> &default_readable();

// Relative to the user's home: downloads that tools keep, and environments. A session's changes there end with it.
const std::vector<std::string> &default_caches();

// Where a tool inside looks for `path` of the user's home, relative to the agent's home (rows B2 to B5 of the environment). Empty if
// sessions see it only at its own path, because the agent has its own directory of that name.
std::string place_in_agent_home(const std::string &path);

// Whether sessions also see it below the user's home: programs and environments use that path for themselves.
bool is_at_own_path(const std::string &path, bool is_cache);

// An entry of a user's `readable` outside of homes: data that others keep. Judged by its text, and by where it leads
// (common/as_user/user_paths.hpp).
std::optional<TextProblem> problem_of_shared_data(const std::string &path);
// As the policy writes an entry of these lists: "~/x", or "/data/sets".
std::string written_home_path(const std::string &path);

// Names directly in it that hold credentials; a session does not see them. With such names it is an environment, whichever list has it.
std::vector<std::string> masked_in(const std::string &path);

// Relative to the user's home: what has credentials, or runs code for users of the directory around it. Files and directories.
const std::vector<std::string> &never_shown();

// Whether a path relative to a home is, contains or is inside one of never_shown(). The same for toolchains and roots.
std::optional<TextProblem> problem_of_secrets(std::string_view below_home);

// Whether an absolute path, in any home, has a name of never_shown() or is inside one with that name.
std::optional<TextProblem> problem_of_secrets_anywhere(std::string_view path);

// An entry of a list: "~/" and a path that is not, does not contain and is not inside one of never_shown(). Masked names in it do not
// count.
std::optional<TextProblem> problem_of_home_directory(const std::string &path);

// --- Which system calls a policy may refuse besides those that every session is refused, and which of these it may let through.

struct CallsPolicy;

// A call that a session makes unless the policy refuses it. Not in the table: what a program needs to begin, to end and to start others,
// and what hardening.tracing decides about.
struct DeniableCall {
    const char *name;
    const char *group; // of systemd-analyze(1) syscall-filter, as far as sessions make its calls; empty without one
};

inline constexpr DeniableCall deniable_calls[] = {
#include "common/deniable_calls.inc"
};

// Refused in every session unless the policy names them. A process does with them what it does to itself, and learns what it could learn
// otherwise: none of them leads to another process, around the filters, or out of the view.
enum class Refusal {
    always, // by the launcher's own filter, whatever else filters calls
    listed, // by what is on the list of calls: the unit's, or the launcher's
};
struct AllowableCall {
    const char *name;
    Refusal refusal;
};
inline constexpr AllowableCall allowable_calls[] = {
    {"mincore", Refusal::listed},           // which pages of its own memory are in use
    {"name_to_handle_at", Refusal::always}, // a file's number; nobody opens it by that, because open_by_handle_at(2) stays refused
    {"personality", Refusal::always},       // 32-bit names, memory that can be run: setarch(8)
    {"pkey_alloc", Refusal::listed},        // keys of its own memory
    {"pkey_free", Refusal::listed},         {"pkey_mprotect", Refusal::listed},
};

// Kinds of sockets, in the order of the bits of a set of them.
inline constexpr std::string_view address_families[] = {"unix", "inet", "inet6", "netlink"};
inline constexpr unsigned all_address_families = (1U << std::size(address_families)) - 1;

// Rules for an element of hardening.deny_system_calls, allow_system_calls and address_families.
std::optional<TextProblem> problem_of_denied_call(const std::string &name);
std::optional<TextProblem> problem_of_allowed_call(const std::string &name);
std::optional<TextProblem> problem_of_address_family(const std::string &name);

// The names of the policy's lists, without its groups, sorted, each once.
std::vector<std::string> denied_calls_of(const CallsPolicy &calls);
std::vector<std::string> allowed_calls_of(const CallsPolicy &calls);
bool is_allowed_call(const CallsPolicy &calls, std::string_view name);
// As a set: the bit of each that the policy names.
unsigned address_families_of(const CallsPolicy &calls);

} // namespace pi_agent
