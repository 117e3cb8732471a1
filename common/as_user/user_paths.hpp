// Opens paths as a user, also where that user's agents can have written.
#pragma once

#include "common/decide/decision.hpp"

namespace pi_agent {

// Whether a session that shows this canonical path, in one of these places, masks it.
bool is_masked(const AgentPlaces &places, const std::string &path);

// Opens paths as a user, without lending the user's rights to the agent. What an agent can have written is content, not an instruction: a
// path that has come into a directory where agents write (AgentPlaces) does not leave it again, whoever made the link.

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

// --- Resolves a project root as its user: it opens every step with that user's rights, and follows no symlink that the user could change.

struct ResolvedRoot {
    std::string path; // canonical, from the descriptor
    UniqueFd fd;      // O_PATH directory
};

struct RootProblem {
    Position where; // of the root in the policy
    std::string text;
    bool is_gone = false; // it does not exist
};

// Runs with the rights of `user` (the caller must be that user: the wrapper, or a child that became them).
// Refuses "/", a home directory itself (of `user` or of any account that shares it), and what does not exist or is not a directory. Also
// refuses ".." components, and a symlink on the way that belongs to anyone but root or is in such a directory.
std::variant<ResolvedRoot, RootProblem> resolve_root(const RootSpec &root, const Account &user);

// The same of shared data (`readable` outside of the home), with the reason for people instead.
std::variant<ResolvedRoot, std::string> resolve_shared_data(const RootSpec &place, const Account &user);

// Refuses every start of a user for roots that were not found: any that may not be absent, and all of them. Of each root of the rules what
// is wrong with it, or nothing. Throws PolicyError(user_root).
void require_roots(const AccessRules &rules, const std::vector<std::optional<RootProblem>> &problems);

// Each root of the rules, in their order; none where it may be absent. Throws PolicyError for any other that cannot be used, and if there
// is no root at all. Runs with the rights of `user`, as resolve_root does.
std::vector<std::optional<ResolvedRoot>> resolve_roots(const AccessRules &rules, const Account &user);

// Text only: "~" and "~/x" become the home of `user`; anything else must be absolute. Shared with parse-time checks.
std::string expand_home(const std::string &text, const Account &user);

// The same of a root, in which "{user}" is the name of `user` (policy_paths.hpp).
std::string expand_root(const std::string &text, const Account &user);

// --- What `pi` and pi-agentctl look at as the caller; a start needs none of it.

// The directory of a start, as its user sees it. Refusals have the same text in `pi` and in explanations.

// "." or a path. Throws Failure(denied) if this user may not enter it, SystemFailure if it does not exist.
UniqueFd open_working_directory(const std::string &path);

// Canonical. Throws Failure(denied) if it was deleted, or if this mount namespace does not have it.
std::string path_of_working_directory(FdRef directory);

// The directories in which agents of the caller write.

// For processes of `user`. Leaves out unusable roots, which no session sees.
std::vector<AgentPlace> find_roots(const AccessRules &rules, const Account &user);
AgentPlaces find_agent_places(const Policy &policy, const AccessRules &rules, const Account &user);

// What a start does not follow: links out of places where agents write, in what it reads as the user.

// Everything that a start reads as its user: the config directory first, the directory of skills, files of variables, key, known hosts,
// git's own files. Absolute.
std::vector<std::string> paths_read_as_user(const Policy &policy, const AccessRules &rules, const Account &user);

// What is left out of these paths and everything below them, each as a text for people: its name, and the reason. Calls `go_on` before each
// entry.
std::set<std::string> find_links_out(const UserPaths &paths, const std::vector<std::string> &tops, const std::function<bool()> &go_on);

} // namespace pi_agent
