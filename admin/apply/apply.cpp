// Apply and rollback, which policy is applied, what is left of people who left, and undoing all of it.
#include "admin/apply/apply.hpp"

#include "admin/diagnose/faults.hpp"
#include "admin/programs/program.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/state/state.hpp"
#include "admin/text/terminal.hpp"

#include <fmt/format.h>

#include <sstream>

namespace pi_agent {

namespace {

// A policy that cannot be read does not keep another one from replacing it, whatever is wrong with it.
PolicyFiles read_installed()
{
    try {
        return read_policy_sources(policy_path);
    } catch (const PolicyError &) {
        return {};
    }
}

PolicyFiles choose(const AsRoot &root, const PolicyFiles &installed)
{
    auto applied = read_applied(root);
    if (applied.last && !are_same(*applied.last, installed)) return std::move(*applied.last);
    if (applied.previous) return std::move(*applied.previous);
    throw NothingToDo("no earlier policy was applied on this host, so rollback has nothing to return to");
}

// Completes what a rollback or an edit was killed in: some of the policy's files were there already, and others not yet.
PolicyFiles complete_files(const AsRoot &root, PolicyFiles installed, bool dry_run, std::ostream &out)
{
    std::optional<HostBefore> unfinished;
    try {
        unfinished = read_unfinished(root);
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): told where it counts: it keeps no emergency stop waiting
    }
    if (!unfinished || !unfinished->policy || !is_between(installed, *unfinished->policy)) return installed;
    const auto &[before, wanted] = *unfinished->policy;
    if (are_same(installed, before) || are_same(installed, wanted)) return installed;
    Changes changes(dry_run, out);
    install_policy_files(root, installed, wanted, changes);
    return wanted;
}

// --- What is left of people who left.

constexpr std::size_t named_limit = 20; // that apply names one by one

bool can_go(const Left &left)
{
    return left.kept.empty();
}

std::string count_of_left(const std::vector<Left> &left, Left::Kind kind, const char *one, const char *several)
{
    const auto count = std::ranges::count_if(left, [kind](const Left &each) { return each.kind == kind && can_go(each); });
    return count == 0 ? "" : fmt::format("{} {}", count, count == 1 ? one : several);
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
    const nlohmann::json list = mapped(left, [&](const auto &each) {
        return nlohmann::json{{"what", each.kind == Left::Kind::home ? "home" : "account"},
                              {"user", each.user},
                              {"account", each.account},
                              {"path", text_or_null(each.path)},
                              {"why", each.why},
                              {"kept", text_or_null(each.kept)},
                              {"bytes", number_or_null(size_of(root, policy, each))}};
    });
    return {{"left", list}};
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

// What `apply` says at its end of what people left behind. What cannot be found out is a warning.
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
    out << fmt::format("left behind: 'sudo pi-agentctl user prune' removes {}\n",
                       left.size() <= named_limit ? "that" : fmt::format("{} homes and accounts of people who left", left.size()));
}

// A change after which the host follows the policy without an apply counts as applied: rollback goes back to before it, and not further.
void keep_as_step(const AsRoot &root, const PolicyFiles &files, std::ostream &warnings)
{
    try {
        const auto lock = take_apply_lock(root);
        if (are_same(read_policy_sources(policy_path), files)) keep_applied(root, files); // else it was only tried, or has changed since
    } catch (const Failure &failure) {
        warnings << "pi-agentctl: warning: rollback does not know this change yet: " << failure.what() << "; run: sudo pi-agentctl apply\n";
    }
}

// --- Undoing apply, in the opposite order.

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
    if (const auto place = hiding_place_if_there(root, policy); place)
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
    if (const auto known = read_state_place(root); known.is_settled()) return known.place;
    throw Failure(ExitStatus::configuration, "a move of the agents' homes was interrupted; finish it first: sudo pi-agentctl state move");
}

void remove_homes(const AsRoot &root, const std::string &state_dir, Changes &changes)
{
    struct stat status {};
    if (::lstat(state_dir.c_str(), &status) == 0)
        changes.make("remove " + state_dir + ", with the homes of all agents", [&] { remove_all_state(root, state_dir); });
}

} // namespace

void run_apply(const ApplyOptions &options, std::ostream &out, std::ostream &warnings, std::optional<PolicyFiles> before)
{
    claim_root("apply", "changes the host, so only root can run it");
    const auto observer = Observer::self();
    const auto &root = *observer.root();
    auto lock = take_apply_lock(root);
    auto files = complete_files(root, read_policy_sources(policy_path), options.dry_run, out);
    if (options.dry_run) {
        const auto last = read_applied(root).last;
        if (last && !are_same(*last, files)) out << "the policy has changed since it was last applied:\n" << difference_of(*last, files);
    }
    auto policy = parse_policy(files);
    apply_policy(observer, std::move(lock), {std::move(files), std::move(before), {}}, options, out, warnings);
    if (policy.wrapper.enable) tell_left(root, policy, out, warnings); // the emergency stop waits for no user database
}

void tell_apply(const Observer &observer, const PolicyFiles &files, std::ostream &out, std::ostream &warnings)
{
    std::ostringstream would;
    std::ostringstream besides; // apply warns of these itself
    int count = 0;
    try {
        ApplyOptions options;
        options.dry_run = true;
        count = apply_policy(observer, take_apply_lock(*observer.root()), {files, {}, {}}, options, would, besides);
    } catch (const Failure &failure) {
        warnings << prefix_lines("pi-agentctl: ", std::string("apply would stop: ") + failure.what());
        return;
    }
    if (count == 0) {
        keep_as_step(*observer.root(), files, warnings);
        out << "nothing to apply: the next start follows this\n";
    } else
        out << "run 'sudo pi-agentctl apply', which does this:\n" << would.str();
}

void run_rollback(bool yes, const ApplyOptions &options, std::ostream &out, std::ostream &warnings)
{
    require_own_policy("rollback");
    claim_root("rollback", "changes the host, so only root can run it");
    const auto observer = Observer::self();
    const auto &root = *observer.root();
    auto editing = take_edit_lock(root);
    const auto installed = read_installed();
    const auto wanted = choose(root, installed);
    if (const auto policy = parse_policy(wanted); policy.wrapper.enable) { // the emergency stop does not depend on the host
        HostCheck check{policy, observer, Means::installed};
        check_host(check);
        check.problems.throw_if_any();
    }
    out << difference_of(installed, wanted) << std::flush;
    if (!options.dry_run) require_consent("Put this policy back, and apply it?", yes);
    auto lock = take_apply_lock(root); // not during the question: an emergency stop would have to wait
    if (!are_same(read_installed(), installed) || !are_same(choose(root, installed), wanted))
        throw Failure(FailureKind::changed_meanwhile, "another command changed or applied the policy meanwhile; run this one again");
    apply_policy(observer, std::move(lock), {wanted, installed, std::move(editing)}, options, out, warnings);
}

void run_sudoers(std::ostream &out, std::ostream &notes)
{
    const auto policy = load_policy(policy_path);
    const auto sudo = installed_sudo_kind();
    const auto text = sudoers_text(policy, policy_path, build::runner_path, sudo);
    if (has_program(visudo_of(sudo)))
        require_valid_rule(text, sudo);
    else
        notes << "pi-agentctl: there is no visudo here, so nobody has checked this\n";
    if (!policy.wrapper.enable) notes << "pi-agentctl: wrapper.enable is false: apply would install no rule, and remove the one there is\n";
    out << text;
}

void run_prune(const PruneOrder &order, std::ostream &out)
{
    const auto root = claim_root("user prune", "removes homes and accounts of agents, so only root can run it");
    if (order.json && !order.dry_run) throw Failure(ExitStatus::usage, "--json lists what is left, and needs --dry-run");
    auto policy = load_policy(policy_path);
    const auto left = find_left(root, policy, order.gone);
    if (order.json) return print_json(to_json(root, policy, left), out);
    for (const auto &each : left) {
        const auto size = to_size(size_of(root, policy, each));
        out << (can_go(each) ? (order.dry_run ? "would: remove " : "left behind: ") : "stays: ") << to_text(each)
            << (size.empty() ? "" : " (" + size + ")") << ": " << each.why << (can_go(each) ? "" : ", but " + each.kept) << '\n';
    }
    out << std::flush;
    if (std::ranges::none_of(left, can_go)) {
        out << "nothing to remove\n";
        return;
    }
    if (order.dry_run) return;
    require_program("userdel");
    const auto homes =
        count_of_left(left, Left::Kind::home, "home of an agent with all that is in it", "homes of agents with all that is in them");
    const auto accounts = count_of_left(left, Left::Kind::account, "account", "accounts");
    require_consent("Remove " + homes + (homes.empty() || accounts.empty() ? "" : ", and ") + accounts + ", as listed?", order.yes);
    const auto lock = take_apply_lock(root); // not during the question: an emergency stop would have to wait
    policy = load_policy(policy_path);
    mark_host_changed(root); // a start that is under way either sees this, or shows as a session now
    if (find_left(root, policy, order.gone) != left)
        throw Failure(FailureKind::changed_meanwhile, "somebody came back, or left, or started a session meanwhile; run this again");
    Changes changes(false, out);
    remove_left(root, policy, left, changes);
}

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
    if (!order.dry_run) {
        std::string question = build::is_system_managed ? "" : "Take the sudo rule away";
        if (!order.keep_hidden)
            question += std::string(question.empty() ? "Open" : " and open") + " the agent's program to everybody, without a sandbox";
        if (order.state) question += ", and remove all homes of agents with what is in them";
        if (order.accounts) question += ", and the agents' accounts";
        require_consent(question + "?", order.yes);
    }
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
    forget_package_files(root, changes);
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
