// What is read as the user: the config, for the writer in the agent's home, and the files that policy and command line name.
#pragma once

#include "common/as_user/user_paths.hpp"
#include "common/host/identity.hpp"
#include "runner/as_agent/sync_messages.hpp"
#include "runner/plan/host_view.hpp"

namespace pi_agent {

// --- The reading half of the config sync: runs as the user, opens everything that the user's config names, and follows symlinks with the
// user's rights only. It follows none out of a directory that agents write in.

// A place that the session sees at its own path.
struct ShownPlaces {
    const HostView &view;
    std::string project, home;
};

bool is_shown(const ShownPlaces &shown, const std::string &path);
// Also in /dev and /sys, of which the session has its own.
bool is_there_inside(const ShownPlaces &shown, const std::string &path);

// What a session has of that which the user's settings and project name.
struct SessionPlaces {
    std::function<bool(const std::string &path)> is_there = {}; // at its own path; none: nothing is looked at
    std::string home = {};                                      // the user's
    std::string project = {};                                   // the shown directory, and the working directory in it; on the host
    std::string directory = {};
    std::set<std::string> variables = {};      // that the policy sets
    std::vector<std::string> env_files = {};   // the user's own
    std::set<std::string> held_providers = {}; // whose keys the policy has
};

// A directory of the user that is brought to a place in the agent's home.
struct ConfigSource {
    std::string directory; // absolute; a missing one counts as empty
    std::string inside;    // relative to the agent's home
    bool is_config;        // the config directory, with documents and classes; else all of it is mirrored
};

struct ReadingPlan {
    std::vector<ConfigSource> sources;
    ConfigClasses classes;
    std::vector<std::string> documents; // of the config directory: sent first, and not listed
    AgentPlaces agents;                 // content of these places leads nowhere else
    std::string sessions_outside = {};  // of the config directory: named once, where it holds sessions; empty: none stay outside
    SessionPlaces places = {};
};

// Tells the writer over `transfer` (both ways) what there is and hands it what it asks for; sends the names of what is skipped, each as one
// answer, over `channel`; an empty answer means done. Throws Failure(configuration) when a source is not a readable directory, or a
// document not a readable file.
void read_config(const AsUser &user, const ReadingPlan &plan, FdRef transfer, FdRef channel);

// What the user's settings, models and servers, and links of the project, name that the session does not have: a line each, with what to
// do.
std::vector<std::string> name_missing_places(const ReadingPlan &plan);

// --- Files of certificates that variables name, such as a company's own authority, read as the user.

// For a process of the user's. A file in a `shown` place is left alone. A file without certificates, or one that cannot be read, is left
// alone too, and a notice says so.
CertificateFiles read_certificate_files(const UserPaths &paths, const std::vector<CertificateVariable> &variables,
                                        const ShownPlaces &shown);

// --- Files that the user names on the command line, of which the session gets copies.

constexpr std::size_t copies_size_limit = 32UL << 20U; // bytes of one start
constexpr std::size_t copies_count_limit = 2000;       // files and directories of one start

// For a process of the user's. Copies each file that the session does not see into `copies`, an empty directory of the user's: file N, from
// 1, into the directory N. A missing file is left to the agent, which reports it in its own words. Throws Failure(usage) for what cannot be
// handed over: not a file, unreadable, too large, or behind a symlink that must not be followed.
HandedFiles copy_named_files(const UserPaths &paths, const std::vector<ArgumentFile> &files, const ShownPlaces &shown, FdRef copies);

// --- Keys of the user's that the policy names: for `git push` and `git fetch` over ssh, with the hosts that the user knows; for commits.

// For a process of the user's. Keys are absolute, and may be missing; `home` is the user's home.
SshFiles read_ssh_files(const UserPaths &paths, const std::optional<std::string> &key, const std::optional<std::string> &signing_key,
                        const std::string &home);

// --- The user's own files of variables that a policy names, read as the user.

// For a process of the user's. A missing file sets nothing. Throws Failure(configuration) for what is not a file, cannot be read, is larger
// than env_file_limit or breaks the syntax. Where agents can have made it so, it is left out, and `notices` say so.
HostVariables read_host_env_files(const UserPaths &paths, const std::vector<std::string> &files, const std::string &home);

// --- Opens what a user's config names, as that user: only files and directories, never anything that acts or waits when it is opened. From
// an agents' directory nothing leads out (common/as_user/user_paths.hpp).

// For processes that have become the user; symlinks are followed with the user's rights.
struct HostFile {
    UniqueFd fd; // O_RDONLY, a regular file; none when it cannot be read
    HostFacts facts;
    std::string problem;    // if it cannot
    bool by_agents = false; // it is where agents write, or something there kept it from being read
};

constexpr const char *no_regular_file = "it is not a regular file, but a directory, a pipe, a socket or a device";

// `path` is relative to a directory that a walk has reached.
HostFile open_host_file(const UserPaths &paths, const UserPlacePtr &from, const std::string &path);
// `path` is absolute.
HostFile open_host_file(const UserPaths &paths, const std::string &path);
// Opens what a walk has already reached: exactly what was looked at.
HostFile open_host_file(const UserPlace &place);

// None when it is missing, and when agents can have made it unusable: then `left_out` says how. Throws Failure(configuration) when it is
// not a readable directory, or is a symlink to nothing; `what` names it in messages.
UserPlacePtr open_source_directory(const UserPaths &paths, const std::string &path, const std::string &what, std::string &left_out);

// Opens it so that its entries can be read; none where that fails (errno), or it is not a directory.
UniqueFd open_to_list(const UserPlace &directory);

// A file in such a directory: none when it is missing or left out, with the same refusals as for the directory; `place` names it.
HostFile open_document(const UserPaths &paths, const UserPlacePtr &directory, const std::string &name, const std::string &place,
                       std::string &left_out);

// Waits while the agent, run by the user on the host, holds its lock on a file (a directory called name.lock, younger than ten seconds).
void wait_for_lock(FdRef directory, const std::string &name, int patience_milliseconds);

// True for files that the kernel generates (/proc, /sys): a child of root's process sees root's things there.
bool is_kernels(FdRef place);

} // namespace pi_agent
