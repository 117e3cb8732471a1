// Lets commits of the agent carry the user's name and address, as git on the host has them for this directory, and its git work where the
// user trusts somebody else's repository; nothing else of the user's git configuration gets in.
#pragma once

#include "common/decide/user_paths.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/as_user/project.hpp"
#include "runner/plan/environment.hpp"
#include "runner/plan/git_config.hpp"
#include "runner/root/errand/child.hpp"
#include "runner/root/launch/session_watch.hpp"
#include "runner/root/session/session_directory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// What was found, or why nothing could be: `problem` is for people, and empty where all is well.
struct FoundIdentity {
    GitIdentity identity;
    std::string problem;
    std::vector<std::string> notices = {}; // of single files that were left out
};

// Asks the host's git, in the current directory, about the user's own files below `home`. The repository around is not asked, but decides
// which conditional includes count. Of the directories that the user calls safe, those count that concern `shown` (safe_directory).
FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline);

// A value of git's safe.directory (git-config(1)) as a session has it that shows the directory `shown`: "" (forget those before), "*", and
// what lies in `shown` or holds it; "~/" is the user's home. Nothing for a directory that is none of the session's business. Pure.
std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown);

// Names the session's git configuration, in the lowest layer of the environment: each of the others may name another file.
void name_git_config(EnvironmentInput &environment);

// A child with the user's rights that asks, while systemd builds the unit.
class GitIdentityReader {
public:
    // Starts it, in the working directory of `project`; nothing where the policy does not want it.
    GitIdentityReader(const AsRoot &root, const Account &user, const OpenedProject &project, const AgentPlaces &agents, bool wanted);

    // Waits for it and writes what it found into the session's /run, where the agent cannot change it, as its git's configuration. Returns
    // what the user should know.
    std::vector<std::string> show(const SessionDirectory &session, const SessionWatch &watch, RepositoryConfig config);

private:
    [[nodiscard]] bool wait(const SessionWatch &watch) const;
    FoundIdentity receive(const SessionWatch &watch);

    std::optional<Child> child_;
    std::string problem_; // why there is none though it was wanted
    Deadline deadline_{};
};

} // namespace pi_agent
