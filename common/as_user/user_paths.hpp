// Opens paths as a user, also where that user's agents can have written.
#pragma once

#include "common/decide/start.hpp"

namespace pi_agent {

// For processes of `user`. Leaves out unusable roots, which no session sees.
std::vector<AgentPlace> find_roots(const AccessRules &rules, const Account &user);
AgentPlaces find_agent_places(const Policy &policy, const AccessRules &rules, const Account &user);

// Whether a session that shows this canonical path, in one of these places, masks it.
bool is_masked(const AgentPlaces &places, const std::string &path);

// Opens paths as a user, without lending the user's rights to the agent. What an agent can have written is content, not an instruction: a
// path that has come into a directory where agents write (common/as_user/user_paths.hpp) does not leave it again, whoever made the link.

// What an agent can have arranged: a link or mount that leads out of a directory where agents write, or an entry there that cannot be
// opened. The text names it, its target, and what to do.
class NotFollowed : public Failure {
public:
    NotFollowed(const std::string &text, bool leads_out) : Failure(ExitStatus::configuration, text), leads_out_(leads_out) {}
    [[nodiscard]] bool leads_out() const noexcept { return leads_out_; }

private:
    bool leads_out_;
};

// The place that a walk reached; never a symlink.
struct UserPlace {
    std::string path; // as walked, with followed links replaced by their targets; inside an agents' directory, starting with its own path
    UniqueFd fd;      // O_PATH
    struct stat facts {};
    const AgentPlace *written_by = nullptr;           // the agents' directory around it; nullptr: only the user made the way here
    std::shared_ptr<const UserPlace> above = nullptr; // inside one: the meaning of ".."; empty for that directory itself
};
using UserPlacePtr = std::shared_ptr<const UserPlace>;

// For processes that have become the user. Outside the agents' directories it follows links as the kernel does. Inside, it takes each step
// from the last descriptor, without links and mount points (openat2(2)), and ".." is the step back. Whatever an agent renames or exchanges
// meanwhile, the result was inside.
class UserPaths {
public:
    explicit UserPaths(AgentPlaces places) : places_(std::move(places)) {}
    UserPaths(const UserPaths &) = delete;
    UserPaths &operator=(const UserPaths &) = delete;
    ~UserPaths() = default;

    // Absolute. Throws NotFollowed, and SystemFailure for what cannot be opened.
    [[nodiscard]] UserPlacePtr follow(const std::string &path) const;
    // Relative to a directory that was reached.
    [[nodiscard]] UserPlacePtr follow(UserPlacePtr from, const std::string &path) const;

    // The agents' directory that the path enters, even if the target does not exist or is not followed; nullptr if none.
    [[nodiscard]] const AgentPlace *entered_by(const std::string &path) const;

    [[nodiscard]] const AgentPlaces &places() const noexcept { return places_; }

private:
    AgentPlaces places_;
};

// --- The directory of a start, as its user sees it. Refusals have the same text in `pi` and in explanations.

// "." or a path. Throws Failure(denied) if this user may not enter it, SystemFailure if it does not exist.
UniqueFd open_working_directory(const std::string &path);

// Canonical. Throws Failure(denied) if it was deleted, or if this mount namespace does not have it.
std::string path_of_working_directory(FdRef directory);

} // namespace pi_agent
