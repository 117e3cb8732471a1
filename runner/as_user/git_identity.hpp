// What the caller's git says outside, for a session's git.
#pragma once

#include "common/base/channel.hpp"
#include "common/decide/user_paths.hpp"
#include "common/host/identity.hpp"
#include "runner/as_user/repository_settings.hpp"
#include "runner/wire/user_files.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// --- The user's settings, as git on the host has them for this directory: who commits, what is safe, what else passes.

// Asks the host's git, in the current directory, about the user's own files below `home`. The repository around is not asked, but decides
// which conditional includes count. Of the directories that the user calls safe, only those that concern `shown` count (safe_directory).
// Notices name what the user's settings or `repository` ask for and a session cannot do.
FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline, const RepositorySettings &repository = {});

// A value of git's safe.directory (git-config(1)) as a session that shows the directory `shown` gets it: "" (forget the values before it),
// "*", and paths in `shown` or above it; "~/" is the user's home. Empty for any other directory. Pure.
std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown);

constexpr int git_patience_seconds = 2;

// --- Runs one of the host's programs with the rights of the child that this is called in, with bounds on time and output.

struct ProgramOutput {
    enum class End { exited, killed, not_installed, late, too_long };
    End end = End::killed;
    int status = 0;        // where it exited
    std::string output;    // standard output, at most `limit` bytes
    std::string complaint; // the beginning of standard error
};

// `command[0]` is a name, looked for in the directories of the system's own programs. `environment` is all that it gets (NAME=VALUE),
// besides a PATH of these directories. It works in the current directory. Its standard input is the first of `inputs`, or empty; a second
// one is descriptor 3. After the deadline, or when it writes more than `limit` bytes, it is killed. Never runs as root: only a child's task
// has an AsUser.
ProgramOutput run_host_program(const AsUser &user, const std::vector<std::string> &command, const std::vector<std::string> &environment,
                               std::size_t limit, Deadline deadline, const std::vector<int> &inputs = {});

} // namespace pi_agent
