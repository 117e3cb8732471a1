// Undoes apply, in the opposite order.
#include "admin/apply/apply.hpp"

#include "admin/host/accounts.hpp"
#include "admin/host/agent_binary.hpp"
#include "admin/host/command_name.hpp"
#include "admin/host/root_files.hpp"
#include "admin/host/sudoers.hpp"
#include "admin/host/unfinished_apply.hpp"
#include "admin/programs/program.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/state/state.hpp"
#include "admin/state/state_move.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/host/remedy.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/session/session_directory.hpp"

#include <cerrno>
#include <fmt/format.h>
#include <set>
#include <sys/stat.h>

namespace pi_agent {

namespace {

// What apply did follows from the policy that it applied, not from what somebody has written since.
Policy applied_policy(const AsRoot &root)
{
    const auto applied = read_applied(root);
    return parse_policy(applied.last ? *applied.last : read_policy_sources(policy_path));
}

void show_agent_binary(const AsRoot &root, Policy policy, Changes &changes, std::ostream &out)
{
    policy.wrapper.hide_direct_binary = false;
    hide_npm_installs(root, policy, changes);
    const auto current = places_of_agent(root, policy);
    try {
        hide_agent_binary(root, policy, changes);
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != ENOENT) throw;
        out << "the agent's program " << policy.agent.binary << " does not exist any more\n";
    }
    give_back_hidden(root, current, policy.agent.group, changes);
}

// For the removal of the package, after which there is no pi-agentctl.
void tell_hidden(const AsRoot &root, const Policy &policy, std::ostream &out)
{
    if (!policy.wrapper.hide_direct_binary) return;
    const auto place = hiding_place_if_there(root, policy);
    if (place)
        out << "the agent in " << place->path << " stays closed to everybody but root; to let everybody run it, without a sandbox, "
            << command_on("chmod 0755", place->path, "open it") << '\n';
}

void remove_accounts(const AsRoot &root, const Policy &policy, Changes &changes)
{
    for (const auto &made : made_agent_accounts())
        remove_agent_account(root, made.account.name, changes);
    const auto found = find_group(policy.agent.group); // it may have gone with the account of its name
    if (found && policy.agent.create_user && found->value() < 1000)
        changes.make("remove the group " + policy.agent.group, [&] { remove_group(policy.agent.group); });
}

std::string settled_place(const AsRoot &root)
{
    const auto known = read_state_place(root);
    if (known.is_settled()) return known.place;
    throw Failure(ExitStatus::configuration, "a move of the agents' homes was interrupted; finish it first: sudo pi-agentctl state move");
}

void remove_homes(const AsRoot &root, const std::string &state_dir, Changes &changes)
{
    struct stat status {};
    if (::lstat(state_dir.c_str(), &status) == 0)
        changes.make("remove " + state_dir + ", with the homes of all agents", [&] { remove_all_state(root, state_dir); });
}

std::string question_of(const RemoveOrder &order)
{
    std::string question = build::is_system_managed ? "" : "Take the sudo rule away";
    if (!order.keep_hidden)
        question += std::string(question.empty() ? "Open" : " and open") + " the agent's program to everybody, without a sandbox";
    if (order.state) question += ", and remove all homes of agents with what is in them";
    if (order.accounts) question += ", and the agents' accounts";
    return question + "?";
}

} // namespace

void run_remove(const RemoveOrder &order, std::ostream &out)
{
    const auto root = claim_root("remove", "changes the host, so only root can run it");
    if (order.accounts && order.keep_hidden)
        throw Failure(ExitStatus::usage, "--accounts and --keep-hidden exclude each other: the hidden files belong to the agents' group");
    if (order.accounts && !order.state)
        throw Failure(ExitStatus::usage, "--accounts needs --state: else a later account with the same number would own the agents' files");
    auto policy = applied_policy(root);
    if (order.state) settled_place(root);
    if (order.accounts)
        for (const auto *program : {"userdel", "groupdel"})
            require_program(program);
    require_no_session(root, "end them first: pi-agentctl stop --all");
    if (!order.dry_run) require_consent(question_of(order), order.yes);
    const auto lock = take_apply_lock(root); // not during the question: an emergency stop would have to wait
    policy = applied_policy(root);
    Changes changes(order.dry_run, out);
    if (!build::is_system_managed)
        remove_sudoers(root, sudoers_directory, changes);
    else
        out << "the sudo rule stays: the configuration of this system brings it\n";
    if (!order.dry_run) {
        remove_unfinished_note(root); // an apply that waits for its trial, or that was killed, has nothing to go back to any more
        mark_host_changed(root);      // a start that is under way either sees this, or is a session here
    }
    require_no_session(root, "it was started meanwhile; nobody can start another now: pi-agentctl stop --all, and run this again");
    stop_empty_scopes(root, changes, out);
    const auto places = order.accounts ? places_of_group(root, policy) : std::set<std::string>(); // before the notes of these go
    if (order.keep_hidden && defence_is_on("keep-hidden"))
        tell_hidden(root, policy, out);
    else
        show_agent_binary(root, policy, changes, out);
    remove_command(root, places_of_command(), changes);
    if (order.accounts && !order.dry_run) require_nothing_of_group(places, policy.agent.group);
    if (order.state) {
        const std::string state_dir = settled_place(root);
        const bool is_elsewhere = state_dir != default_state_dir; // which only a note of apply's says, so that one goes last
        if (is_elsewhere) remove_homes(root, state_dir, changes);
        forget_applied(root, changes);
        if (!is_elsewhere) remove_homes(root, state_dir, changes);
    }
    if (order.accounts) remove_accounts(root, policy, changes);
    if (changes.count() == 0 && !order.keep_hidden) out << "nothing to do\n";
}

} // namespace pi_agent
