// Apply, rollback, and the text of the sudo rule: which policy is applied.
#include "admin/apply/apply.hpp"

#include "admin/apply/applying.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/diagnose/user_view.hpp"
#include "admin/host/root_files.hpp"
#include "admin/host/sudoers.hpp"
#include "admin/host/unfinished_apply.hpp"
#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/policy/policy_load.hpp"

#include <optional>
#include <sstream>
#include <utility>

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
    throw Nothing("no earlier policy was applied on this host, so rollback has nothing to return to");
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
    if (count == 0)
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

} // namespace pi_agent
