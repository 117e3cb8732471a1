// The sudo rule that lets authorised users start the runner, and nothing else: its text, and its installation.
#pragma once

#include "admin/host/accounts.hpp"
#include "admin/host/changes.hpp"
#include "admin/host/sudo_kind.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// The whole file, in words that this sudo knows: one rule without arguments for each entry of the policy, but for users of users.d who
// are members of a group that has an entry. Throws Failure(internal) for a runner path that would need quoting there; names are plain since
// the policy was parsed.
std::string sudoers_text(const Policy &policy, const std::string &policy_file, const std::string &runner, SudoKind kind,
                         const MembersOf &members_of = group_members);

// Installs `text` as `directory`/pi-agent, unless it is there already: written under a name that sudo ignores, checked by visudo on its
// own, renamed, and checked again with the whole configuration; the former file comes back when that fails. `users` are the policy's.
void install_sudoers(const AsRoot &root, const std::string &directory, const std::string &text, SudoKind kind,
                     const std::vector<std::string> &users, Changes &changes);

// The rule that is installed, if there is one; and that very rule back in its place, or none.
std::optional<std::string> read_sudoers(const AsRoot &root, const std::string &directory);
void put_back_sudoers(const AsRoot &root, const std::string &directory, const std::optional<std::string> &former);

// Whether the rule `text` is for `user`, by name or by group.
bool lets_start(const std::string &text, const Account &user);

// Removes the rule: nobody can start the runner any more.
void remove_sudoers(const AsRoot &root, const std::string &directory, Changes &changes);

} // namespace pi_agent
