// Lists sessions, ends them, and becomes `pi` for a shell: `pi-agentctl sessions`, `stop`, `shell`.
#pragma once

#include "admin/host/root_files.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/confined/session_end.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/session/session_directory.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// --- pi-agentctl sessions and stop: which sessions there are, and ending them.

struct SessionView {
    std::string id;
    Uid uid;
    std::string user;                                // "uid 1000" where the user database has none of that number
    std::string account, project, directory, method; // each empty until the agent starts, as are the others
    std::string unit, program;                       // unit: with method systemd
    std::optional<std::uint64_t> started_usec;       // since 1970
    SessionUsage usage;
};

// In the order in which they started, those that are still being prepared at the end. Of `user` alone where one is given. Values of the
// record are harmless (common/record/record_event.hpp), names are plain.
std::vector<SessionView> list_sessions(const AsRoot &root, const std::optional<std::string> &user);

// Which of these `id`, a whole one or its beginning, names. Throws Nothing when there is none, with `listing`, the command that lists them,
// and Failure(usage) for several.
std::string choose_session(const std::vector<std::string> &ids, const std::string &id, const char *listing);

// The commands. `user` is a name of the user database, or Failure(usage).
void run_sessions(const std::optional<std::string> &user, bool json, std::ostream &out);

// Which sessions to end: one, those of a user, or, with neither, all.
struct StopOrder {
    std::optional<std::string> id;
    std::optional<std::string> user;
};
// Returns when they are gone. Throws Nothing when there is none to end, Failure(system_failure) when one does not end.
void run_stop(const StopOrder &order, std::ostream &out);

// --- Ends the sessions of users whom the policy does not authorise any more; all of them under the emergency stop.

using FindAccount = std::function<std::optional<Account>(Uid)>;

// Which of these sessions have to end, and why.
std::vector<EndOrder> sessions_to_end(const Policy &policy, const std::vector<LiveSession> &sessions, const FindAccount &find);

// Returns the sessions that do not end.
std::vector<std::string> end_unauthorised_sessions(const AsRoot &root, const Policy &policy, Changes &changes);

// Stops the scopes that starts left which were killed: else the next start would, and where nobody may start pi any more there is none.
// What fails is a warning.
void stop_empty_scopes(const AsRoot &root, Changes &changes, std::ostream &warnings);

// A session that does not end, as far as it is known: without a unit (method bwrap), or an account, that is empty.
struct LeftSession {
    std::string id;
    std::string unit;
    std::string account;
};
// What to look at it with, in a message.
std::string where_to_look(const std::vector<LeftSession> &left);

// Throws Failure(system_failure) that says where to look, when sessions are left; `problem` is its beginning.
void require_ended(const std::vector<std::string> &living, const std::string &problem);

// --- pi-agentctl shell: a shell in the same sandbox as the agent, for whoever asks what the agent sees.

// Becomes the wrapper beside this program, which starts the shell as it starts the agent: the policy, the sudo rule and the sandbox are the
// same, and so is the exit status. `arguments` are bash's. Throws SystemFailure; Failure(usage) for root, who is no user of pi.
[[noreturn]] void become_shell(const std::vector<std::string> &arguments);

} // namespace pi_agent
