// The phases of a change of the host, in their order: written down, made, finished, or taken back.
#include "admin/apply/apply.hpp"

#include "admin/diagnose/faults.hpp"
#include "admin/programs/program.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/state/state.hpp"

#include <sstream>

namespace pi_agent {

// The phases of apply: plan, probe, change, probe again, finish. The sudo rule comes last, so that nobody can start what is not ready.

namespace {

bool is_installed(const PolicyFiles &files)
{
    Problems unread;
    return are_same(read_policy_sources(policy_path, std::nullopt, unread), files) && unread.empty();
}

// One change of this host, by apply, rollback or edit: it is finished, or goes back by itself. Made and used under the lock of apply.
class Applying {
public:
    Applying(const Observer &observer, UniqueFd lock, const Policy &policy, WantedPolicy wanted, const ApplyOptions &options,
             std::ostream &out, std::ostream &warnings)
        : observer_(observer), root_(*observer.root()), lock_(std::move(lock)), policy_(policy), wanted_(std::move(wanted)),
          options_(options), out_(out), warnings_(warnings), changes_(options.dry_run, out)
    {
    }

    int run()
    {
        // A policy that was in force before this command: whoever makes the rest fail keeps no session that it does not allow.
        if (!wanted_.before) end_sessions();
        try {
            change();
        } catch (const PolicyError &) { // of the check or the plan: each mistake has its place
            take_back();
            throw;
        } catch (const Failure &failure) {
            throw Failure(failure, take_back() + failure.what());
        } catch (const std::exception &) {
            take_back();
            throw;
        }
        if (wanted_.before) end_sessions();
        require_ended(living_, "sessions that the policy does not allow any more do not end");
        return changes_.count();
    }

private:
    void end_sessions() { living_ = end_unauthorised_sessions(root_, policy_, changes_); }

    void change()
    {
        // Takes up what a command that was killed has left unfinished: going back leads to what that one found.
        if (auto earlier = options_.dry_run ? std::nullopt : read_unfinished(root_)) {
            before_ = std::move(*earlier);
            noted_ = before_.command;
            was_cut_short_ = true;
        }
        can_go_back_ = !options_.dry_run;
        require_fitting();
        if (options_.dry_run) {
            prepare(changes_);
            enable(changes_, warnings_);
            warn(find_warnings(policy_), warnings_);
            if (changes_.count() == 0) out_ << "nothing to do\n";
            return;
        }
        const bool is_change = count_plan() > 0 || wanted_.before || was_cut_short_;
        if (was_cut_short_) out_ << "an earlier command has not finished: this one finishes what it began\n" << std::flush;
        if (!build::is_system_managed) rule_ = read_sudoers(root_, sudoers_directory);
        if (is_change && wanted_.before) prepare(changes_);
        const bool was_tried = try_before();
        if (is_change && !wanted_.before) prepare(changes_);
        const int prepared = changes_.count();
        enable(changes_, warnings_);
        const bool has_changed = changes_.count() > prepared || was_cut_short_;
        if (is_change) mark_host_changed(root_);
        warn(find_warnings(policy_), warnings_);
        if (has_changed || !was_tried) try_after();
        keep_applied(root_, wanted_.files);
        fault_point("apply-kept");
        remove_unfinished_note(root_);
        noted_.clear(); // from here on nothing goes back
        make_package_files(root_, warnings_);
        if (changes_.count() == 0) out_ << (was_tried ? "nothing to change: this host follows the policy\n" : "nothing to do\n");
    }

    // Goes through every step without taking it: what is wrong with one shows before the first.
    int count_plan()
    {
        std::ostringstream nowhere;
        Changes planned(true, nowhere);
        prepare(planned);
        enable(planned, nowhere);
        return planned.count();
    }

    // What a start would be refused for, before anything changes.
    void require_fitting()
    {
        HostCheck check{policy_, observer_, options_.try_sandbox ? Means::running : Means::later};
        check_installed_files(check.problems);
        check_host(check);
        check.problems.throw_if_any();
        warn(check.gone, warnings_);
        if (policy_.agent.create_user) require_program("systemd-sysusers");
        if (!options_.try_sandbox) warn(find_what_starts_lack(policy_, observer_), warnings_);
        if (build::is_system_managed) return;
        sudo_ = installed_sudo_kind();
        rule_text_ = sudoers_text(policy_, policy_path, build::runner_path, sudo_);
        require_valid_rule(rule_text_, sudo_);
        if (read_sudoers(root_, sudoers_directory) == rule_text_) return;
        // A mistake in our own rule, as another sudo reads it, goes with that rule: its successor is checked once it is there.
        const std::string own = std::string(sudoers_directory) + "/pi-agent:";
        if (const auto checked = check_sudoers(sudo_); !checked.problem.empty() && checked.problem.find(own) == std::string::npos)
            throw Failure(ExitStatus::configuration, checked.problem + "; no rule can be installed beside it");
    }

    // What comes before the change of the host itself: where it is written down, and the policy's files.
    void prepare(Changes &changes)
    {
        if (!changes.dry_run()) { // under the lock that the change is made under
            auto now = look_at_host(root_, policy_);
            now.command = make_session_id();
            if (wanted_.before && !wanted_.before->empty()) now.policy = PolicyChange{*wanted_.before, wanted_.files};
            before_ = was_cut_short_ ? joined(std::move(before_), now) : std::move(now);
        }
        make_state_directories(root_, policy_, changes);
        make_applied_directory(root_, policy_.agent.state_dir, changes);
        if (!changes.dry_run()) { // on disk: from here on it goes back
            write_unfinished(root_, before_);
            noted_ = before_.command;
            fault_point("apply-begun");
        }
        settle_state_place(root_, policy_, changes);
        if (!wanted_.before) return;
        if (!is_installed(wanted_.files)) install_policy_files(root_, *wanted_.before, wanted_.files, changes);
        if (changes.dry_run()) return;
        if (!is_installed(wanted_.files)) // a file that could not be read before
            throw Failure(ExitStatus::configuration,
                          "policy.d or users.d holds other files too; look at them, and run 'pi-agentctl apply'");
        wanted_.editing.reset();
    }

    void enable(Changes &changes, std::ostream &warnings)
    {
        create_accounts(root_, policy_, needed_agent_accounts(policy_), changes);
        reached("apply-accounts", changes);
        hand_over_empty_homes(root_, policy_, changes);
        hide_agent_binary(root_, policy_, changes);
        for (const auto &install : hide_npm_installs(root_, policy_, changes))
            warnings << "pi-agentctl: warning: everybody can run the agent in " << install.path
                     << ", and it cannot be hidden: " << install.why_left << "; npm uninstall -g it\n";
        // What earlier policies hid, whose agent was another program or was elsewhere.
        auto current = places_of_agent(root_, policy_);
        if (const auto place = hiding_place_of(root_, policy_)) current.insert(place->path);
        give_back_hidden(root_, current, policy_.agent.group, changes);
        install_command(root_, policy_.wrapper.command_name, places_of_command(), changes);
        reached("apply-hidden", changes);
        if (build::is_system_managed) return;
        install_sudoers(root_, sudoers_directory, rule_text_, sudo_, users_of(policy_), changes);
        reached("apply-ruled", changes);
    }

    static void reached(const char *point, const Changes &changes)
    {
        if (!changes.dry_run()) fault_point(point);
    }

    // As users who can start pi already; there may be none yet. True if it was tried.
    bool try_before()
    {
        if (!options_.try_sandbox) return false;
        if (read_state_place(root_).place != policy_.agent.state_dir) return false; // no start works at a place that is not made yet
        lock_.reset(); // a process that belongs to a user keeps no other apply, and no emergency stop, waiting
        const auto report = try_sandbox(policy_, observer_, [this](const Account &user, const AccessRules &rules) {
            return (build::is_system_managed || (rule_ && lets_start(*rule_, user))) && find_account(rules.agent_account).has_value();
        });
        take_lock_again();
        return require_good(report);
    }

    void try_after()
    {
        if (!options_.try_sandbox) return;
        out_.flush();
        lock_.reset();
        const auto report = try_sandbox(policy_, observer_, [](const Account &, const AccessRules &) { return true; });
        take_lock_again();
        if (!require_good(report)) warnings_ << "pi-agentctl: warning: " << to_text(report) << '\n';
        fault_point("apply-tried");
    }

    bool require_good(const CanaryReport &report)
    {
        if (report.user.empty()) return false;
        if (!report.is_good()) throw Failure(ExitStatus::unavailable, to_text(report));
        out_ << "done: " << to_text(report) << '\n' << std::flush;
        return true;
    }

    void take_lock_again()
    {
        try {
            lock_ = take_apply_lock(root_);
        } catch (const Failure &failure) {
            belongs_to_another_ = true; // whoever holds it takes up what is unfinished
            throw Failure(FailureKind::changed_meanwhile, std::string("another command changes this host meanwhile: ") + failure.what());
        }
        const auto note = read_unfinished(root_); // somebody else may have gone on with it, or ended it, while the lock was free
        belongs_to_another_ = note ? note->command != noted_ : !noted_.empty();
        if (belongs_to_another_)
            throw Failure(FailureKind::changed_meanwhile, "another command changed this host meanwhile; look at what it said");
        if (!is_installed(wanted_.files))
            throw Failure(FailureKind::changed_meanwhile, "the policy changed meanwhile; run the command again");
    }

    // Returns how the message begins.
    std::string take_back()
    {
        if (!can_go_back_ || belongs_to_another_) return "";
        std::string begin = "nothing is applied: ";
        if (!noted_.empty()) {
            Changes changes(false, out_);
            const bool is_whole = go_back(root_, before_, changes, warnings_);
            mark_host_changed(root_);
            begin = is_whole ? "nothing is applied, and what had been changed is as it was: "
                             : "nothing is applied, and the warnings say what is not as it was, which the next apply goes on with: ";
        }
        const bool stays = wanted_.before && wanted_.before->empty();
        return stays ? "the files of the earlier policy are back, because those before them cannot be read, but " + begin : begin;
    }

    const Observer &observer_;
    const AsRoot &root_;
    UniqueFd lock_;
    const Policy &policy_;
    WantedPolicy wanted_;
    const ApplyOptions &options_;
    std::ostream &out_, &warnings_;
    Changes changes_;
    SudoKind sudo_ = SudoKind::original;
    std::string rule_text_;
    std::optional<std::string> rule_; // of sudo, as it was at first
    std::vector<std::string> living_; // sessions that do not end
    HostBefore before_;               // the host before the first change
    std::string noted_;               // the command that the note of an unfinished change names; empty without one
    bool was_cut_short_ = false, can_go_back_ = false;
    bool belongs_to_another_ = false;
};

} // namespace

int apply_policy(const Observer &observer, UniqueFd lock, WantedPolicy wanted, const ApplyOptions &options, std::ostream &out,
                 std::ostream &warnings)
{
    const auto policy = parse_policy(wanted.files);
    if (policy.wrapper.enable) return Applying(observer, std::move(lock), policy, std::move(wanted), options, out, warnings).run();
    // The emergency stop depends on nothing else. Whatever is wrong with the host, it removes the rule; if it cannot, it still ends the
    // sessions.
    const auto &root = *observer.root();
    const bool dry_run = options.dry_run;
    Changes changes(dry_run, out);
    if (wanted.before && !is_installed(wanted.files)) install_policy_files(root, *wanted.before, wanted.files, changes);
    std::string rule_stays;
    const auto best_effort = [&](const char *what, const auto &task) {
        try {
            task();
        } catch (const std::exception &failure) {
            warnings << "pi-agentctl: warning: " << what << failure.what() << '\n'; // the stop is what counts
        }
    };
    out << to_string(policy.wrapper.where) << ": wrapper.enable is false: nobody may start pi\n";
    try {
        if (!build::is_system_managed) remove_sudoers(root, sudoers_directory, changes);
    } catch (const std::exception &failure) {
        rule_stays = failure.what();
    }
    // Before the sessions end: an apply that waits for its trial puts no rule back then.
    if (!dry_run) best_effort("an apply that was cut short stays noted: ", [&] { remove_unfinished_note(root); });
    const auto living = end_unauthorised_sessions(root, policy, changes);
    stop_empty_scopes(root, changes, warnings);
    if (!rule_stays.empty()) warnings << "pi-agentctl: warning: the sudo rule stays, and lets nobody start pi: " << rule_stays << '\n';
    best_effort("this policy is not kept for a rollback: ", [&] {
        make_applied_directory(root, policy.agent.state_dir, changes);
        if (!dry_run) keep_applied(root, wanted.files);
    });
    require_ended(living, "sessions that the policy does not allow any more do not end");
    if (!rule_stays.empty()) throw Failure(ExitStatus::system_failure, "all sessions have ended, but the sudo rule stays: " + rule_stays);
    if (changes.count() == 0) out << "nothing to do\n";
    return changes.count();
}

} // namespace pi_agent
