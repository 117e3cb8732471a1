// Choosing what comes back, checking it, writing it, applying it.
#include "admin/apply/rollback.hpp"

#include "admin/diagnose/check.hpp"
#include "admin/host/host_lock.hpp"
#include "admin/host/system_managed.hpp"
#include "admin/text/nothing.hpp"
#include "admin/text/question.hpp"
#include "common/base/error.hpp"

namespace pi_agent {

namespace {

// Whatever is wrong with it: what cannot be read as a policy is no obstacle to putting another one there.
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
    throw Nothing("no earlier policy was applied on this host, so there is none to go back to");
}

void check_wanted(const PolicyFiles &wanted, const Observer &observer)
{
    const auto policy = parse_policy(wanted);
    if (!policy.wrapper.enable) return; // the emergency stop needs nothing of the host
    Problems problems;
    check_host(policy, observer, Means::installed, problems);
    problems.throw_if_any();
}

} // namespace

void run_rollback(bool yes, const ApplyOptions &options, std::ostream &out, std::ostream &warnings)
{
    require_own_policy("rollback");
    const auto observer = Observer::self();
    if (!observer.root())
        throw Failure(ExitStatus::denied, "rollback changes the host, so only root can run it; try 'sudo pi-agentctl rollback'");
    const auto &root = *observer.root();
    auto editing = take_edit_lock(root);
    const auto installed = read_installed();
    const auto wanted = choose(root, installed);
    check_wanted(wanted, observer);
    out << difference_of(installed, wanted) << std::flush;
    if (!options.dry_run) require_consent("Put this policy back, and apply it?", yes);
    auto lock = take_apply_lock(root); // not while somebody is asked: it would keep an emergency stop waiting
    if (!are_same(read_installed(), installed) || !are_same(choose(root, installed), wanted))
        throw Failure(ExitStatus::limit, "somebody else has changed or applied the policy meanwhile; run it again");
    Changes changes(options.dry_run, out);
    install_policy_files(root, installed, wanted, changes);
    if (!options.dry_run && !are_same(read_policy_sources(policy_path), wanted)) // a file that could not be read before
        throw Failure(ExitStatus::configuration,
                      "the policy is back, but policy.d or users.d holds other files beside it; look at them, and run 'pi-agentctl apply'");
    editing.reset();
    try {
        auto order = options;
        order.files_changed = changes.count() > 0;
        apply_files(observer, std::move(lock), wanted, order, out, warnings);
    } catch (const Failure &failure) {
        throw Failure(failure.status(), std::string("the files of the policy are those that came back, but: ") + failure.what());
    }
}

} // namespace pi_agent
