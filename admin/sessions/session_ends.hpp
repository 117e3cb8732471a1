// Ends the sessions of users whom the policy does not authorise any more; all of them under the emergency stop.
#pragma once

#include "admin/host/changes.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/confined/asked_end.hpp"
#include "runner/root/session/session_list.hpp"

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

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

} // namespace pi_agent
