// Judging each live session by the policy as it is now.
#include "admin/sessions/sessions.hpp"

#include "admin/programs/program.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/decide/decision.hpp"
#include "common/policy/policy_load.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/method/systemd_bus.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/session/session_record.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <set>
#include <variant>

namespace pi_agent {

namespace {

// "" while the session may go on.
std::string reason_to_end(const Policy &policy, Uid uid, const FindAccount &find)
{
    if (!policy.wrapper.enable)
        return "the administrator has switched the agent off (" + to_string(policy.wrapper.where) + ", wrapper.enable: false)";
    const std::optional<Account> user = find(uid);
    if (!user) return "uid " + std::to_string(uid.value()) + " is not in the user database any more";
    try {
        if (std::holds_alternative<AccessRules>(find_access_rules(policy, *user, policy_path))) return "";
    } catch (const PolicyError &) { // it contradicts itself about this user: starts are refused until it is mended
        return "";
    }
    return std::string("the policy ") + policy_path + " does not authorise " + escape_for_display(user->name) + " any more";
}

} // namespace

std::vector<EndOrder> sessions_to_end(const Policy &policy, const std::vector<LiveSession> &sessions, const FindAccount &find)
{
    std::vector<EndOrder> orders;
    for (const auto &session : sessions) {
        const std::string reason = reason_to_end(policy, session.user, find);
        if (!reason.empty()) orders.push_back({session.id, reason});
    }
    return orders;
}

std::vector<std::string> end_unauthorised_sessions(const AsRoot &root, const Policy &policy, Changes &changes)
{
    if (!defence_is_on("end-unauthorised")) return {};
    const auto orders = sessions_to_end(policy, live_sessions(root), [](Uid uid) { return find_account(uid); });
    if (orders.empty()) return {};
    auto left = changes.dry_run() ? std::vector<std::string>() : end_sessions(root, orders); // all at once: each may take seconds
    for (const auto &order : orders)
        if (std::find(left.begin(), left.end(), order.session) == left.end())
            changes.make("end the session " + order.session + ": " + order.reason, [] {});
    return left;
}

void stop_empty_scopes(const AsRoot &root, Changes &changes, std::ostream &warnings)
{
    if (!has_systemd()) return;
    try {
        SystemdBus systemd(root);
        for (const auto &scope : find_empty_scopes(systemd))
            changes.make("stop " + scope + ", in which a killed start left nobody", [&] { systemd.stop_unit(scope); });
    } catch (const Failure &failure) {
        warnings << "pi-agentctl: warning: what killed starts left stays: " << failure.what() << '\n';
    }
}

std::string where_to_look(const std::vector<LeftSession> &left)
{
    std::string units;
    std::set<std::string> accounts;
    bool is_unknown = false;
    for (const auto &session : left) {
        if (!session.unit.empty())
            units += " " + escape_for_display(session.unit);
        else if (!session.account.empty())
            accounts.insert(escape_for_display(session.account));
        else
            is_unknown = true;
    }
    std::vector<std::string> commands;
    if (!units.empty()) commands.push_back("systemctl status" + units);
    for (const auto &account : accounts)
        commands.push_back("ps -f -u " + account);
    if (is_unknown) commands.emplace_back("pi-agentctl sessions");
    return fmt::format("{}", fmt::join(commands, "; "));
}

void require_ended(const std::vector<std::string> &living, const std::string &problem)
{
    if (living.empty()) return;
    std::vector<LeftSession> left;
    const UniqueFd sessions = open_sessions();
    for (const auto &id : living) {
        left.push_back({id, "", ""});
        const UniqueFd session = try_open_session(sessions, id);
        const auto record = session ? read_open_record(session) : std::nullopt;
        if (record) left.back() = {id, record->subject.unit, record->subject.account};
    }
    throw Failure(ExitStatus::system_failure, problem + "; look at them: " + where_to_look(left));
}

} // namespace pi_agent
