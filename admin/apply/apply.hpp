// The commands that change the host: apply, remove, rollback, init, edit; and what they show beforehand.
#pragma once

#include "common/host/account.hpp"

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// --- pi-agentctl apply: makes the host follow the policy.

struct ApplyOptions {
    bool dry_run = false;       // only say what would change
    bool try_sandbox = true;    // by a session of the canary's
    bool files_changed = false; // those of the policy, just before, by the same command
};

// Root only. Says each change on `out`; a second run has nothing to do. Ends the sessions that the policy does not allow any more, and
// keeps the policy for a rollback (admin/host/root_files.hpp). Throws before the first change when check finds anything wrong, or when
// the sandbox, tried by a session of a user who can start pi already (admin/diagnose/faults.hpp), does not hold; what fails later
// leaves the steps before it done, and no new sudo rule. When anything was changed, or nobody could start pi before, it is tried at the
// end: Failure (unavailable) when it does not hold, and the sudo rule is what it was.
void run_apply(const ApplyOptions &options, std::ostream &out, std::ostream &warnings);

// --- pi-agentctl rollback: the policy that was applied before becomes the installed one again, and is applied.

// Where the installed policy is not the one that was last applied, that one comes back; else the one that was applied before it. So a
// second rollback takes the first one back. Shows the difference, asks unless `yes`, and checks before anything is written. Throws Nothing
// when there is no earlier policy.
void run_rollback(bool yes, const ApplyOptions &options, std::ostream &out, std::ostream &warnings);

// --- pi-agentctl remove: undoes what apply did to this host.

struct RemoveOrder {
    bool accounts = false;    // the agents' accounts too; only with `state`, whose files would be left to whoever gets their numbers
    bool state = false;       // and what is kept for each user
    bool keep_hidden = false; // the agent's program stays closed: nobody is to run it without a sandbox because that is gone
    bool yes = false;         // do not ask
    bool dry_run = false;
};

// The sudo rule goes first, so that nobody can start what goes next; then the agent's program, and what was hidden beside it, get their
// owners and modes back. The policy stays. Throws
// Failure(limit) while a session lives.
void run_remove(const RemoveOrder &order, std::ostream &out);

// --- pi-agentctl init: a first policy, from the users and directories of this host.

struct InitOrder {
    std::vector<std::string> users;      // --user; none: everybody on this host who could be one
    std::vector<std::string> roots;      // --root, for these users
    std::optional<std::string> network;  // --network, as it is typed
    std::optional<std::string> key;      // --key: a provider, or "none"
    std::optional<std::string> env_file; // --env-file
    std::optional<std::string> output;   // "-": standard output; none: the policy of this host
    bool yes = false;                    // --yes: ask nothing
};

// Where init keeps a key that everybody uses, root 0600; the policy names the file and never holds the key.
std::string key_file();

// What a first policy says besides its users; none: the default, in a comment.
struct PolicyAnswers {
    std::optional<std::string> network;  // full, loopback, none, or addresses
    std::optional<std::string> env_file; // an absolute path
};

// One user of the policy to be; without roots it is only named in a comment.
struct Candidate {
    std::string name;
    std::vector<std::string> roots; // as the policy writes them
};

// The text of a policy that gives these users these roots. Throws Failure(usage) when no user has one, or an answer is not valid.
std::string init_text(const std::vector<Candidate> &candidates, const PolicyAnswers &answers = {});

// Whether this account is a person's: an ordinary number (login.defs(5)), a login shell, and a home of its own.
bool is_persons(const Account &account, const std::string &shell, unsigned first_uid, unsigned last_uid);

// The people of this host, by that.
std::vector<Account> find_people();

// Writes it, a policy that passes the check where the agent is installed, and never over a file that exists: Failure(usage) then. For the
// policy of this host, at a terminal and without `yes`, it asks what the order leaves open: who, where, which network, which key. Nothing
// is written before the last answer. At the end it says what check finds, and what to type next.
void run_init(const InitOrder &order, std::ostream &out, std::ostream &notes);

// --- pi-agentctl edit: changes the policy as visudo changes sudo's rules, so that no mistake is ever in force.

// One editor at a time (Failure(limit)). `name` is the policy's file to change (policy_file_named), the main one without it; one that is
// not there begins. The editor works on a copy beside it, which takes its place only when the policy as a whole has passed the check with
// it; there is no way to keep one that has not. A file that was left as it was, or changed by somebody else meanwhile, is not written.
// Throws Failure(configuration) when the draft is given up because of its mistakes. At the end it offers to apply.
void run_edit(const std::optional<std::string> &name, std::ostream &out, std::ostream &warnings);

// --- pi-agentctl sudoers: the rule that apply would install, for those who keep their sudo rules elsewhere.

// Prints it once visudo has found nothing wrong; where there is no visudo, a note on `notes` says so. Throws Failure(internal) when visudo
// refuses it.
void run_sudoers(std::ostream &out, std::ostream &notes);

// --- pi-agentctl schema: the policy's keys as a JSON Schema (draft 07), for editors and other programs that look at policies.

// Made from the table of common/policy/policy_keys.hpp. It refuses nothing that pi-agent accepts; what it cannot say is in
// docs/reference/policy-files.md.
void run_schema(std::ostream &out);

} // namespace pi_agent
