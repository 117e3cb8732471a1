// What the caller's git says about the caller, and which of the files that it reads are worth copying.
#pragma once

#include "common/base/channel.hpp"
#include "common/decide/user_paths.hpp"
#include "common/host/identity.hpp"
#include "runner/wire/user_files.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// --- The user's name and address, as git on the host has them for this directory, and the directories that they call safe.

// Asks the host's git, in the current directory, about the user's own files below `home`. The repository around is not asked, but decides
// which conditional includes count. Of the directories that the user calls safe, those count that concern `shown` (safe_directory).
FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline);

// A value of git's safe.directory (git-config(1)) as a session has it that shows the directory `shown`: "" (forget those before), "*", and
// what lies in `shown` or holds it; "~/" is the user's home. Nothing for a directory that is none of the session's business. Pure.
std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown);

// --- The user's files of git's settings, and what they include. Git reads each file by itself, and follows no include: one that lies where
// agents write is handed to it open, so that it leads nowhere else (common/decide/user_paths.hpp).

constexpr int git_patience_seconds = 2;

class GitFiles {
public:
    // In the current directory, for which conditional includes count.
    GitFiles(const AsUser &user, const UserPaths &paths, std::string home, Deadline deadline)
        : user_(user), paths_(paths), home_(std::move(home)), deadline_(deadline)
    {
    }

    // user.name, user.email and safe.directory of an absolute path, in git's order; nothing where it is missing. Throws
    // Failure(configuration) with what is wrong with it.
    std::vector<std::pair<std::string, std::string>> read(const std::string &file);

    // What agents can have made unusable, and what is wrong with the repository at hand, each as a text.
    [[nodiscard]] const std::vector<std::string> &notices() const noexcept { return notices_; }

private:
    using Settings = std::vector<std::pair<std::string, std::string>>;

    void read_into(const std::string &file, const UserPlacePtr &from, Settings &settings, int depth);
    Settings ask(const std::string &file, FdRef descriptor);
    void include(const std::string &file, const UserPlacePtr &place, const std::string &path, Settings &settings, int depth);
    bool holds(const std::string &condition, const std::string &file);

    const AsUser &user_;
    const UserPaths &paths_;
    std::string home_;
    Deadline deadline_;
    std::vector<std::string> notices_;
};

// --- Runs one of the host's programs with the rights of the child that this is called in, with bounds on time and output.

struct ProgramOutput {
    enum class End { exited, killed, not_installed, late, too_long };
    End end = End::killed;
    int status = 0;        // where it exited
    std::string output;    // standard output, at most `limit` bytes
    std::string complaint; // the beginning of standard error
};

// `command[0]` is a name, looked for in the directories of the system's own programs. `environment` is all that it gets (NAME=VALUE),
// beside a PATH of these directories. It works in the current directory, its standard input is empty, or the first of `inputs`; a second
// one is descriptor 3. After the deadline, or when it writes
// more than `limit` bytes, it is killed. Never as root, which nobody but a child's task could call this as.
ProgramOutput run_host_program(const AsUser &user, const std::vector<std::string> &command, const std::vector<std::string> &environment,
                               std::size_t limit, Deadline deadline, const std::vector<int> &inputs = {});

} // namespace pi_agent
