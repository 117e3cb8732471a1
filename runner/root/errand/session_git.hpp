// Gives the agent's git what the user's git has outside, as far as it starts no program (runner/plan/git_config.hpp).
#pragma once

#include "runner/plan/git_config.hpp"
#include "runner/root/errand/project.hpp"
#include "runner/root/errand/session_watch.hpp"
#include "runner/root/session/session_directory.hpp"

namespace pi_agent {

// Names the session's git configuration, in the lowest layer of the environment: each other layer may name another file.
void name_git_config(EnvironmentInput &environment);

// The same for settings that win over the repository's own: commits and tags are not signed where the repository wants them signed and the
// session has no key. Without these settings each commit fails.
void leave_commits_unsigned(EnvironmentInput &environment);

// Notices for the user: at each start, and once for the repository.
struct GitNotices {
    std::vector<std::string> always;
    std::vector<std::string> once;
    GitSigning unsigned_for = GitSigning::none; // whose settings ask for signatures that the session cannot make
};

// A child with the user's rights that asks, while systemd builds the unit.
class GitIdentityReader {
public:
    // Starts the child, in the working directory of `project`; does nothing where the policy does not want it.
    GitIdentityReader(const AsRoot &root, const Account &user, const OpenedProject &project, const AgentPlaces &agents, bool wanted);

    // Waits for the child and writes what it found into the session's /run, as the configuration of its git. The agent cannot change that.
    // `has_key`: commits are signed where the user's or the repository's settings ask for it. `repository`: where
    // the session has it and its owner is not mapped; git takes it for its own if it belongs to the caller. Otherwise empty.
    GitNotices show(const SessionDirectory &session, const SessionWatch &watch, RepositoryConfig config, bool has_key,
                    const std::string &repository = {});

private:
    FoundIdentity receive(const SessionWatch &watch);

    std::optional<Child> child_;
    std::string problem_; // why it is missing though it was wanted
    Deadline deadline_{};
};

} // namespace pi_agent
