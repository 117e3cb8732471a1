// What a user can reach, found out with that user's rights: as the user, or as root through a child that became the user.
#pragma once

#include "common/as_user/user_paths.hpp"
#include "common/host/identity.hpp"
#include "runner/wire/user_files.hpp"

namespace pi_agent {

// How far a user may write to a directory. A session has fewer groups than its user.
enum class Writing { none, as_others_let, as_owner };

struct Finding {
    enum class Kind { usable, unusable, unknown };
    Kind kind;
    std::string text;                     // the canonical path, or why not
    std::uint64_t mount = 0;              // that holds what is usable: its id
    std::string file_system_problem = {}; // why a start that shows it is still refused; empty if no reason is known
    std::string mapping_problem = {};     // the same for a start that maps owners (projects.ownership)
    std::string danger = {};              // of a root: who else can change what it is, or where it lies (admin/diagnose/faults.hpp)
    std::string remedy = {};              // against that
    Writing writing = Writing::none;      // to what is usable
    bool is_gone = false;                 // a root that does not exist
};

// The account that looks. Root can look for everybody, any other account only for itself.
class Observer {
public:
    // The process's own identity, claimed once.
    static Observer self();

    [[nodiscard]] bool can_look_for(const Account &user) const noexcept;
    // Set when this process is root.
    [[nodiscard]] const std::optional<AsRoot> &root() const noexcept { return root_; }

    // One finding for each root; all unknown if this process cannot look for `user`.
    [[nodiscard]] std::vector<Finding> resolve_roots(const std::vector<RootSpec> &roots, const Account &user) const;
    [[nodiscard]] std::vector<Finding> resolve_roots(const AccessRules &rules, const Account &user) const;
    // The canonical path of a directory, as `user` reaches it.
    [[nodiscard]] Finding resolve_directory(const std::string &path, const Account &user) const;
    // Where agents of `user` write. Throws Failure when it cannot be found out; only where can_look_for(user).
    [[nodiscard]] AgentPlaces agent_places(const Policy &policy, const AccessRules &rules, const Account &user) const;
    // One finding for each absolute path, where one can be made: the agents' directory that the path leads into, or "".
    [[nodiscard]] std::vector<Finding> agents_on_way(const Policy &policy, const AccessRules &rules, const Account &user,
                                                     const std::vector<std::string> &paths) const;
    // What a start of the user leaves out because agents can have made it lead elsewhere, each as a text (common/as_user/root_path.hpp).
    [[nodiscard]] std::vector<std::string> links_out(const Policy &policy, const AccessRules &rules, const Account &user) const;
    // What a session would find of the lists in the home. Throws Failure when it cannot be found out; only where can_look_for(user).
    [[nodiscard]] OpenedHome find_home_directories(const ToolchainsPolicy &toolchains, const Account &user) const;

private:
    Observer() = default;
    std::optional<AsRoot> root_;
};

// What the installed policy grants to a user. Empty for a user without rules, and for one whose entries contradict each other: that
// concerns only this user, whose own start reports it, and find_refused_starts() (admin/diagnose/dry_start.hpp).
std::optional<AccessRules> rules_of_user(const Policy &policy, const Account &user);

} // namespace pi_agent
