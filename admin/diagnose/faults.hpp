// What is wrong on this host, part by part, for `doctor` and `check`.
#pragma once

#include "admin/diagnose/user_view.hpp"
#include "admin/host/sudoers.hpp"
#include "common/base/problems.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// --- What is wrong with this host, for pi-agentctl doctor.

struct Fault {
    std::string about; // a short stable name: "sudo-rule", "other-pi", …; docs/doctor.md lists them
    std::string what;  // escaped for display
    std::string remedy;
};
using Faults = std::vector<Fault>;

// --- Does this host have what the policy's sandbox method needs?

// What could not be found out by this process, as sentences.
using Unverified = std::vector<std::string>;

// How much of what a start needs (the agents' homes, too) is to be there: nothing yet, where no session can run (an image that is being
// built); the programs, where what they need may not run just now; or everything that a start asks for.
enum class Means { later, installed, running };

// The same look as at the beginning of each start, without one.
void check_method(const Policy &policy, const Observer &observer, Means means, Problems &problems, Unverified &unverified);

// --- Do the agents' homes that are there belong to the accounts that a policy gives the agents?

// Reports each user whose next start would find the agent's home in other hands: after a change of agent.accounts, agent.user or run_as.
void check_homes(const Policy &policy, Problems &problems, Unverified &unverified);

// --- Does this host fit a policy: its users, groups and roots, the agent's program, accounts and homes, and what the method needs?

// Reports files of the installed policy that its users cannot read, and a missing sudo.
void check_installed_files(Problems &problems);

// Reports everything about this host that keeps a start from what the policy says. What `problems` holds already about a key is told, so
// nothing that follows from its value is looked at.
Unverified check_host(const Policy &policy, const Observer &observer, Means means, Problems &problems);

// Of a policy that is valid: what Means::later leaves out, as far as it is to be there.
std::vector<Diagnostic> find_what_starts_lack(const Policy &policy, const Observer &observer);

// --- What is wrong with the host beside the policy: ways around the wrapper, what agents' accounts run outside of sessions, what sessions
// left.

// Users of the policy, with the accounts that their agents run as.
using AgentsOfUsers = std::vector<std::pair<Account, Account>>;

// Programs that anybody can start in the place of the wrapper: the agent itself, and other copies of it.
Faults find_open_programs(const AsRoot &root, const Policy &policy);
// Our own files, which root runs.
Faults find_changed_files();
// Accounts that agents of several users share; what such an account runs, or is to run, without a session.
Faults find_account_faults(const AgentsOfUsers &agents);
// Where state cannot be kept, or a root not be mapped.
Faults find_file_system_faults(const AsRoot &root, const Policy &policy, const AgentsOfUsers &agents, const Observer &observer);
// What sessions left whose runners are gone.
Faults find_leftovers(const AsRoot &root);

// --- Whether sudo lets each user of the policy start the runner, exactly that, and as the policy says.

// `json` is what cvtsudoers(1) prints for `user` on this host (-e -M -f json -m user=…,host=…): the last rule that fits
// decides, and Defaults that this sudo obeys are held against what the runner needs. Pure. Throws Failure(system_failure) for what is no
// such text.
Faults judge_sudoers(const std::string &json, const std::string &user, const std::string &runner, SudoKind kind);

// The installed rule, and the judgement for each of `users`. Throws Failure when sudo's tools cannot be run.
Faults find_sudo_faults(const AsRoot &root, const Policy &policy, const std::vector<std::string> &users);

// --- What a user's own shell starts in the place of the wrapper, found out as that user.

// The wrapper's own path, and those that lead to it from where the host has its programs: on NixOS, users find it by links.
std::vector<std::string> names_of_wrapper(const std::string &command, const std::string &wrapper);

// Runs the user's login shell, as that user and apart from this process (run_as_user). `wrapper`: its names, its own path first.
Faults find_user_faults(const AsRoot &root, const Account &user, const std::string &command, const std::vector<std::string> &wrapper);

// `output` is that shell's; what stands in it is the user's word. Pure.
Faults judge_shell(const std::string &output, const std::string &user, const std::string &command, const std::vector<std::string> &wrapper);

// --- The files that a policy names and that a start reads as the user: not where agents write.

// The config directory, the key, the files of variables and of certificates that `entry`, or the policy for everybody, names. `user` is
// whose entry it is; none for a group, whose names are held against its roots as texts.
void check_named_files(const Policy &policy, const UserEntry &entry, const std::optional<Account> &user, const Observer &observer,
                       Problems &problems, Unverified &unverified);

// --- pi-agentctl version: what runs on this host, in one answer for a report of a fault.

// What cannot be found out is said as such, and no failure. The agent's program is asked as root alone, by a process of the agent's
// account.
void run_version(bool json, std::ostream &out);

// --- What of a policy's documents had better not be written down where many can read it.

// The path of the first text of a document (JSON text of an object) that looks like a secret: by its key, as the value of an option, or as
// what a header authorises with; empty where there is none. `path` names the document. A text that only names one of the `variables`, or
// says none, is no secret.
std::string secret_in_document(const std::string &document, const std::string &path, const std::set<std::string> &variables);

} // namespace pi_agent
