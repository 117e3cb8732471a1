// The sudo rule, and which sudo reads it.
#pragma once

#include "admin/host/accounts.hpp"

namespace pi_agent {

constexpr const char *sudoers_directory = "/etc/sudoers.d";

// --- Which sudo the wrapper starts: the original, or sudo-rs, which reads the same files but knows fewer settings.

enum class SudoKind {
    original,
    older, // the original before 1.9.8, without log_subcmds and intercept: visudo refuses a setting that it does not know
    rs,    // sudo-rs: it leaves out, and complains of, each line that has a setting it does not know
};

// From what `sudo --version` prints. Pure.
SudoKind sudo_kind_of(const std::string &version);

// Of the program that the wrapper runs. Without one, nobody can start anything, and it counts as the original.
SudoKind installed_sudo_kind();

// The visudo that judges as that sudo does: a host may have both.
std::string visudo_of(SudoKind kind);

// The file that it begins with.
std::string main_sudoers_of(SudoKind kind);

// Whether that sudo reads `path`, the installed rule, when its `visudo -c` printed `checked`. sudo-rs names no file there, so it is asked
// what `users`, the policy's, may run. Without users, the rule would be for nobody, and the answer is yes.
bool does_sudo_read(SudoKind kind, const std::string &path, const std::string &checked, const std::vector<std::string> &users);

// --- The sudo rule that lets authorised users start the runner, and nothing else: its text, and its installation.

// The whole file, in words that this sudo knows: one rule without arguments for each entry of the policy, except users of users.d who are
// members of a group that has an entry. Above some hundreds it is one rule for everybody but members of the agents' group, so that it does
// not grow; the runner reads the policy in any case (docs/decisions/0061-one-sudo-line.md). Throws Failure(internal) for a runner path that
// would need quoting there; names are plain since the policy was parsed.
std::string sudoers_text(const Policy &policy, const std::string &policy_file, const std::string &runner, SudoKind kind,
                         const MembersOf &members_of = group_members);

// Throws Failure(internal) if the visudo of that sudo refuses it.
void require_valid_rule(const std::string &text, SudoKind kind);

// Installs `text` as `directory`/pi-agent, unless it is installed already. Writes it under a name that sudo ignores, lets visudo check it
// alone, renames it, and checks the whole configuration again; if that fails, the former file comes back. `users` are the policy's.
void install_sudoers(const AsRoot &root, const std::string &directory, const std::string &text, SudoKind kind,
                     const std::vector<std::string> &users, Changes &changes);

// The installed rule, if there is one. Putting it back restores exactly that rule, or removes the new one if there was none.
std::optional<std::string> read_sudoers(const AsRoot &root, const std::string &directory);
void put_back_sudoers(const AsRoot &root, const std::string &directory, const std::optional<std::string> &former);

// Whether the rule `text` is for `user`, by name or by group.
bool lets_start(const std::string &text, const Account &user);

// Removes the rule: nobody can start the runner any more.
void remove_sudoers(const AsRoot &root, const std::string &directory, Changes &changes);

} // namespace pi_agent
