// Names and removes what is left of people who left: `pi-agentctl prune`, and the last words of `apply`.
#include "admin/apply/apply.hpp"

#include "admin/host/accounts.hpp"
#include "admin/host/root_files.hpp"
#include "admin/programs/program.hpp"
#include "admin/state/left.hpp"
#include "admin/state/state.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/error.hpp"
#include "common/policy/policy_load.hpp"
#include "runner/root/session/session_directory.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace pi_agent {

namespace {

constexpr std::size_t named_limit = 20; // that apply names one by one

bool can_go(const Left &left)
{
    return left.kept.empty();
}

std::string count_of_left(const std::vector<Left> &left, Left::Kind kind, const char *one, const char *several)
{
    const auto count = std::count_if(left.begin(), left.end(), [kind](const Left &each) { return each.kind == kind && can_go(each); });
    return count == 0 ? "" : fmt::format("{} {}", count, count == 1 ? one : several);
}

std::string question_about(const std::vector<Left> &left)
{
    const auto homes =
        count_of_left(left, Left::Kind::home, "home of an agent with all that is in it", "homes of agents with all that is in them");
    const auto accounts = count_of_left(left, Left::Kind::account, "account", "accounts");
    return "Remove " + homes + (homes.empty() || accounts.empty() ? "" : ", and ") + accounts + ", as listed?";
}

// As the agent, and none where that cannot be found out: a size is for people, and keeps nothing from being removed.
std::optional<std::uint64_t> size_of(const AsRoot &root, const Policy &policy, const Left &left)
{
    if (left.kind != Left::Kind::home) return std::nullopt;
    try {
        const auto state = find_state(root, policy.agent.state_dir, left.name);
        return measure_home(root, state.agent, state.home).all;
    } catch (const std::exception &) {
        return std::nullopt;
    }
}

nlohmann::json to_json(const AsRoot &root, const Policy &policy, const std::vector<Left> &left)
{
    auto list = nlohmann::json::array();
    for (const auto &each : left)
        list.push_back({{"what", each.kind == Left::Kind::home ? "home" : "account"},
                        {"user", each.user},
                        {"account", each.account},
                        {"path", text_or_null(each.path)},
                        {"why", each.why},
                        {"kept", text_or_null(each.kept)},
                        {"bytes", number_or_null(size_of(root, policy, each))}});
    return {{"left", list}};
}

void show(const AsRoot &root, const Policy &policy, const std::vector<Left> &left, const char *beginning, std::ostream &out)
{
    for (const auto &each : left) {
        const auto size = to_size(size_of(root, policy, each));
        out << (can_go(each) ? beginning : "stays: ") << to_text(each) << (size.empty() ? "" : " (" + size + ")") << ": " << each.why
            << (can_go(each) ? "" : ", but " + each.kept) << '\n';
    }
    out << std::flush;
}

// One that cannot be removed keeps no other. An account stays where its home does.
void remove_left(const AsRoot &root, const Policy &policy, const std::vector<Left> &left, Changes &changes)
{
    std::string problems;
    std::set<std::string> failed; // accounts
    for (const auto &each : left) {
        if (!can_go(each) || failed.contains(each.account)) continue;
        try {
            if (each.kind == Left::Kind::home)
                changes.make("remove " + to_text(each), [&] { remove_state_of(root, policy.agent.state_dir, each.name); });
            else
                remove_agent_account(root, each.name, changes);
        } catch (const Failure &failure) {
            failed.insert(each.account);
            problems += (problems.empty() ? "" : "\n") + to_text(each) + " stays: " + failure.what();
        }
    }
    if (!problems.empty()) throw Failure(ExitStatus::system_failure, problems);
}

} // namespace

void run_prune(const PruneOrder &order, std::ostream &out)
{
    const auto root = claim_root("prune", "removes homes and accounts of agents, so only root can run it");
    if (order.json && !order.dry_run) throw Failure(ExitStatus::usage, "--json lists what is left, and needs --dry-run");
    auto policy = load_policy(policy_path);
    const auto left = find_left(root, policy, order.gone);
    if (order.json) return print_json(to_json(root, policy, left), out);
    show(root, policy, left, order.dry_run ? "would: remove " : "left behind: ", out);
    if (std::none_of(left.begin(), left.end(), can_go)) {
        out << "nothing to remove\n";
        return;
    }
    if (order.dry_run) return;
    require_program("userdel");
    require_consent(question_about(left), order.yes);
    const auto lock = take_apply_lock(root); // not during the question: an emergency stop would have to wait
    policy = load_policy(policy_path);
    mark_host_changed(root); // a start that is under way either sees this, or shows as a session now
    if (find_left(root, policy, order.gone) != left)
        throw Failure(FailureKind::changed_meanwhile, "somebody came back, or left, or started a session meanwhile; run this again");
    Changes changes(false, out);
    remove_left(root, policy, left, changes);
}

void tell_left(const AsRoot &root, const Policy &policy, std::ostream &out, std::ostream &warnings)
{
    std::vector<Left> left;
    try {
        left = find_left(root, policy);
    } catch (const Failure &failure) { // what apply did is done
        warnings << "pi-agentctl: warning: what people left behind is not known: " << failure.what() << '\n';
    }
    std::erase_if(left, [](const Left &each) { return !can_go(each); });
    if (left.empty()) return;
    if (left.size() <= named_limit)
        for (const auto &each : left)
            out << "left behind: " << to_text(each) << ": " << each.why << '\n';
    out << fmt::format("left behind: 'sudo pi-agentctl prune' removes {}\n",
                       left.size() <= named_limit ? "that" : fmt::format("{} homes and accounts of people who left", left.size()));
}

} // namespace pi_agent
