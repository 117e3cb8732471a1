// Lets commits of the agent carry the user's name and address, and its git work where the user trusts somebody else's repository; nothing
// else of the user's git configuration gets in.
#pragma once

#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/environment.hpp"
#include "runner/plan/git_config.hpp"
#include "runner/root/errand/child.hpp"
#include "runner/root/errand/project.hpp"
#include "runner/root/errand/session_watch.hpp"
#include "runner/root/session/session_directory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

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
