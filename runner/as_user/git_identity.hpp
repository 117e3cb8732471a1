// What the caller's git says outside, for a session's git, with the user's own files of git's settings.
#pragma once

#include "common/as_user/user_paths.hpp"
#include "common/host/identity.hpp"
#include "runner/as_user/git_paths.hpp"
#include "runner/wire/user_files.hpp"

namespace pi_agent {

// Reads the user's own files of git's settings, with what they include, for this directory.

// The path that git reads in a setting's value: "~/" is the user's home.
std::string path_in_setting(const std::string &value, const std::string &home);

struct FoundGitSetting {
    GitSetting setting;
    std::string file;       // that holds it
    bool by_agents = false; // an agent can have written it
};

// The user's files of git's settings, and what they include. Git reads each file by itself, and follows no include. A file where agents
// write is handed to git open, so that it leads nowhere else (common/as_user/user_paths.hpp).
class GitFiles {
public:
    // Reads for the current directory, to which conditional includes refer.
    GitFiles(const AsUser &user, const UserPaths &paths, const std::string &home, Deadline deadline)
        : user_(user), paths_(paths), home_(home), deadline_(deadline)
    {
    }

    // All settings of an absolute path, in git's order; empty where the file is missing. Throws Failure(configuration) with what is wrong
    // with it.
    std::vector<FoundGitSetting> read(const std::string &file);

    // Files that agents can have made unusable, and what is wrong with the repository at hand, each as a text.
    [[nodiscard]] const std::vector<std::string> &notices() const noexcept { return notices_; }

private:
    void read_into(const std::string &file, const UserPlacePtr &from, int depth);
    std::vector<GitSetting> ask(const std::string &file, FdRef descriptor);
    void include(const std::string &file, const UserPlacePtr &place, const std::string &path, int depth);
    bool holds(const std::string &condition, const std::string &file);

    const AsUser &user_;
    const UserPaths &paths_;
    const std::string &home_;
    Deadline deadline_;
    std::vector<FoundGitSetting> settings_;
    std::vector<std::string> notices_;
};

// What the caller's git says outside, for a session's git.

// --- The user's settings, as git on the host has them for this directory: who commits, what is safe, what else passes.

// Asks the host's git, in the current directory, about the user's own files below `home`. The repository around is not asked, but decides
// which conditional includes count. Of the directories that the user calls safe, only those that concern `shown` count (safe_directory).
// Notices name what the user's settings or `repository` ask for and a session cannot do.
FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline, const RepositorySettings &repository = {});

// Where a session's git works.
struct GitPlace {
    GuardedTree shown;
    std::string below;                        // the working directory beneath it
    std::optional<std::string> repository;    // that holds it, beneath `shown`
    std::optional<GuardedTree> git_directory; // of that repository, where it is another tree
};

// In a child that is `account`: all that a session's git gets of its user's, and what the repository asks for. It enters the working
// directory.
FoundIdentity find_for_session(const AsUser &user, const Account &account, const GitPlace &place, const AgentPlaces &agents,
                               Deadline deadline);

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
