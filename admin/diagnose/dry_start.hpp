// Whether starts would be, without one: the decision of wrapper and runner (common/decide/start.hpp) on what pi-agentctl finds of the host.
#pragma once

#include "admin/diagnose/user_view.hpp"
#include "admin/host/accounts.hpp"

namespace pi_agent {

// A start that would be.
struct DryStart {
    RootCandidate root;
    Policy policy; // as it holds there
};

// A start of `user` in a directory that exists. `callers` is the policy as it holds for them, `roots` has a finding of each root of the
// rules. Throws the Failure with which the start would end.
DryStart dry_start(const Account &user, const AccessRules &rules, Policy callers, const std::vector<Finding> &roots,
                   const Finding &directory);

// --- By the policy's text alone, without looking for a root on the host: what the entries of a user say together.

// A start that the policy refuses.
struct RefusedStart {
    std::string root;            // as the policy writes it
    std::vector<Diagnostic> why; // what the start says
    [[nodiscard]] std::string text() const;
};

// The starts in their roots that the policy refuses to a user with these rules. `of_all` is the policy without users. Throws PolicyError if
// their entries contradict each other.
std::vector<RefusedStart> refused_starts(const Policy &of_all, const Account &user, const AccessRules &rules);

using FindUser = std::function<std::optional<Account>(const std::string &name)>;

// The user database: this host's, or a test's.
struct Database {
    MembersOf members_of = group_members;
    FindUser find_user = [](const std::string &name) { return find_account(name); };
};

// Of all users of the policy, each with its place and whom it keeps from starting. Of users with the same entries it tells one, and how
// many they are.
std::vector<Diagnostic> find_refused_starts(const Policy &policy, const Database &database = {});

// Of accounts that could be: members of a group without members, or of two groups at once that share no account.
std::vector<Diagnostic> find_possible_refusals(const Policy &policy, const Database &database = {});

} // namespace pi_agent
