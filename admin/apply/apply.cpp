// Apply, rollback, and the text of the sudo rule. The rule comes last, so that nobody can start what is not ready.
#include "admin/apply/apply.hpp"

#include "admin/diagnose/faults.hpp"
#include "admin/diagnose/user_view.hpp"
#include "admin/host/accounts.hpp"
#include "admin/host/agent_binary.hpp"
#include "admin/host/root_files.hpp"
#include "admin/host/sudoers.hpp"
#include "admin/programs/program.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/policy/policy_load.hpp"
#include "runner/root/session/session_directory.hpp"

#include <exception>
#include <sstream>
#include <utility>

namespace pi_agent {

namespace {

void require_fitting(const Policy &policy, const Observer &observer, const ApplyOptions &options, std::ostream &warnings)
{
    Problems problems;
    check_installed_files(problems);
    check_host(policy, observer, options.try_sandbox ? Means::running : Means::later, problems);
    problems.throw_if_any();
    if (!build::is_system_managed) require_program(visudo_of(installed_sudo_kind()));
    if (policy.agent.create_user) require_program("systemd-sysusers");
    if (!options.try_sandbox) warn(find_what_starts_lack(policy, observer), warnings);
}

void enable(const AsRoot &root, const Policy &policy, Changes &changes, std::ostream &warnings)
{
    const auto accounts = needed_agent_accounts(policy, group_members);
    create_accounts(root, policy, accounts, changes);
    make_state_directories(root, policy, changes);
    make_applied_directory(root, policy.agent.state_dir, changes); // holds the notes of what is hidden
    hide_agent_binary(root, policy, changes);
    for (const auto &install : hide_npm_installs(root, policy, changes))
        warnings << "pi-agentctl: warning: everybody can run the agent in " << install.path
                 << ", and it cannot be hidden: " << install.why_left << "; npm uninstall -g it\n";
    // What earlier policies hid, whose agent was another program or was elsewhere.
    auto current = places_of_agent(root, policy);
    if (const auto place = hiding_place_of(root, policy)) current.insert(place->path);
    give_back_hidden(root, current, policy.agent.group, changes);
    if (build::is_system_managed) return;
    const auto sudo = installed_sudo_kind();
    install_sudoers(root, sudoers_directory, sudoers_text(policy, policy_path, build::runner_path, sudo), sudo, users_of(policy), changes);
}

// Tries the sandbox twice: on the host as it is, under the policy to apply, and on the host after the change.
class Trial {
public:
    Trial(const Observer &observer, const Policy &policy, std::ostream &out) : observer_(observer), policy_(policy), out_(out)
    {
        if (!build::is_system_managed) rule_ = read_sudoers(*observer_.root(), sudoers_directory);
    }

    // Tries it as users who can start pi already; there may be none yet. Throws Failure(unavailable) if the sandbox does not hold.
    void before()
    {
        const auto report = try_sandbox(policy_, observer_, [this](const Account &user, const AccessRules &rules) {
            return (build::is_system_managed || (rule_ && lets_start(*rule_, user))) && find_account(rules.agent_account).has_value();
        });
        if (!tell(report)) return;
        if (!report.is_good()) throw Failure(ExitStatus::unavailable, "nothing is applied: " + to_text(report));
        is_tried_ = true;
    }

    // If the sandbox does not hold, puts the former sudo rule back.
    void after(std::ostream &warnings)
    {
        const auto report = try_sandbox(policy_, observer_, [](const Account &, const AccessRules &) { return true; });
        if (!tell(report)) warnings << "pi-agentctl: warning: " << to_text(report) << '\n';
        if (report.user.empty() || report.is_good()) return;
        throw Failure(ExitStatus::unavailable, take_back_rule() + ": " + to_text(report));
    }

    [[nodiscard]] bool is_tried() const noexcept { return is_tried_; }

private:
    bool tell(const CanaryReport &report)
    {
        if (!report.user.empty() && report.is_good()) out_ << "done: " << to_text(report) << '\n' << std::flush;
        return !report.user.empty();
    }

    std::string take_back_rule()
    {
        if (build::is_system_managed) return "the policy is applied";
        const auto lock = take_apply_lock(*observer_.root());
        if (read_sudoers(*observer_.root(), sudoers_directory) == rule_) return "the policy is applied";
        put_back_sudoers(*observer_.root(), sudoers_directory, rule_);
        return rule_ ? "the policy is applied, but the sudo rule is again the one of before"
                     : "the sudo rule is taken back, so nobody can start pi";
    }

    const Observer &observer_;
    const Policy &policy_;
    std::ostream &out_;
    std::optional<std::string> rule_; // as it was at first
    bool is_tried_ = false;
};

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
    throw Nothing("no earlier policy was applied on this host, so rollback has nothing to return to");
}

// `files` are the installed ones or, in a dry run, those that would be installed. `observer` is root; `lock` is the lock of apply, given
// away.
void apply_files(const Observer &observer, UniqueFd lock, const PolicyFiles &files, const ApplyOptions &options, std::ostream &out,
                 std::ostream &warnings)
{
    const auto &root = *observer.root();
    const auto policy = parse_policy(files);
    Changes changes(options.dry_run, out);
    std::vector<std::string> living;
    std::string rule_stays;
    std::optional<Trial> trial;
    if (policy.wrapper.enable) {
        // First, so that no fault of the host keeps a session alive.
        living = end_unauthorised_sessions(root, policy, changes);
        require_fitting(policy, observer, options, warnings);
        if (options.try_sandbox && !options.dry_run) {
            trial.emplace(observer, policy, out);
            lock.reset(); // a process that belongs to a user keeps no other apply, and no emergency stop, waiting
            trial->before();
            lock = take_apply_lock(root);
            if (!are_same(read_policy_sources(policy_path), files))
                throw Failure(FailureKind::changed_meanwhile,
                              "nothing is applied, because the policy changed meanwhile; run the command again");
        }
        enable(root, policy, changes, warnings);
        if (!options.dry_run && changes.count() > 0) mark_host_changed(root);
        warn(find_warnings(policy), warnings);
    } else {
        // The emergency stop depends on nothing else. Whatever is wrong with the host, it removes the rule; if it cannot, it still ends the
        // sessions.
        out << to_string(policy.wrapper.where) << ": wrapper.enable is false: nobody may start pi\n";
        try {
            if (!build::is_system_managed) remove_sudoers(root, sudoers_directory, changes);
        } catch (const std::exception &failure) {
            rule_stays = failure.what();
        }
        living = end_unauthorised_sessions(root, policy, changes);
        stop_empty_scopes(root, changes, warnings);
        if (!rule_stays.empty()) warnings << "pi-agentctl: warning: the sudo rule stays, and lets nobody start pi: " << rule_stays << '\n';
    }
    try {
        if (!policy.wrapper.enable) make_applied_directory(root, policy.agent.state_dir, changes); // else it exists by now
        if (!options.dry_run) keep_applied(root, files);
    } catch (const Failure &failure) {
        if (policy.wrapper.enable) throw;
        warnings << "pi-agentctl: warning: this policy is not kept for a rollback: " << failure.what() << '\n'; // the stop is what counts
    }
    require_ended(living, "sessions that the policy does not allow any more do not end");
    if (!rule_stays.empty()) throw Failure(ExitStatus::system_failure, "all sessions have ended, but the sudo rule stays: " + rule_stays);
    const bool was_tried = trial && trial->is_tried();
    if (changes.count() == 0 && !options.files_changed)
        out << (was_tried ? "nothing to change: this host follows the policy\n" : "nothing to do\n");
    if (!trial || (was_tried && changes.count() == 0)) return;
    out.flush();
    lock.reset();
    trial->after(warnings);
}

} // namespace

void run_apply(const ApplyOptions &options, std::ostream &out, std::ostream &warnings)
{
    claim_root("apply", "changes the host, so only root can run it");
    const auto observer = Observer::self();
    auto lock = take_apply_lock(*observer.root());
    const auto files = read_policy_sources(policy_path);
    if (options.dry_run) {
        const auto last = read_applied(*observer.root()).last;
        if (last && !are_same(*last, files)) out << "the policy has changed since it was last applied:\n" << difference_of(*last, files);
    }
    apply_files(observer, std::move(lock), files, options, out, warnings);
    if (const auto policy = parse_policy(files); policy.wrapper.enable) // the emergency stop waits for no user database
        tell_left(*observer.root(), policy, out, warnings);
}

void tell_apply(const Observer &observer, const PolicyFiles &files, std::ostream &out, std::ostream &warnings)
{
    std::ostringstream would;
    std::ostringstream besides; // apply warns of these itself
    try {
        apply_files(observer, take_apply_lock(*observer.root()), files, {true, true, true}, would, besides);
    } catch (const Failure &failure) {
        warnings << prefix_lines("pi-agentctl: ", std::string("apply would stop: ") + failure.what());
        return;
    }
    if (would.str().empty())
        out << "nothing to apply: the next start follows this\n";
    else
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
        Problems problems;
        check_host(policy, observer, Means::installed, problems);
        problems.throw_if_any();
    }
    out << difference_of(installed, wanted) << std::flush;
    if (!options.dry_run) require_consent("Put this policy back, and apply it?", yes);
    auto lock = take_apply_lock(root); // not during the question: an emergency stop would have to wait
    if (!are_same(read_installed(), installed) || !are_same(choose(root, installed), wanted))
        throw Failure(FailureKind::changed_meanwhile, "another command changed or applied the policy meanwhile; run this one again");
    Changes changes(options.dry_run, out);
    install_policy_files(root, installed, wanted, changes);
    if (!options.dry_run && !are_same(read_policy_sources(policy_path), wanted)) // a file that could not be read before
        throw Failure(
            ExitStatus::configuration,
            "the earlier policy is back, but policy.d or users.d holds other files too; look at them, and run 'pi-agentctl apply'");
    editing.reset();
    try {
        auto order = options;
        order.files_changed = changes.count() > 0;
        apply_files(observer, std::move(lock), wanted, order, out, warnings);
    } catch (const Failure &failure) {
        throw Failure(failure, std::string("the files of the earlier policy are back, but: ") + failure.what());
    }
}

void run_sudoers(std::ostream &out, std::ostream &notes)
{
    const auto policy = load_policy(policy_path);
    const auto sudo = installed_sudo_kind();
    const auto text = sudoers_text(policy, policy_path, build::runner_path, sudo);
    const auto visudo = visudo_of(sudo);
    if (!has_program(visudo)) {
        notes << "pi-agentctl: there is no visudo here, so nobody has checked this\n";
    } else if (const auto result = run_program({visudo, "-c", "-f", "-"}, text); result.status != 0) {
        throw Failure(ExitStatus::internal, visudo + " refuses the rule that was generated: " + one_line(result.output));
    }
    if (!policy.wrapper.enable) notes << "pi-agentctl: wrapper.enable is false: apply would install no rule, and remove the one there is\n";
    out << text;
}

} // namespace pi_agent
