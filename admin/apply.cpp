// The order in which a host is changed: the sudo rule comes last, so that nobody can start what is not ready.
#include "admin/apply.hpp"

#include "admin/accounts.hpp"
#include "admin/agent_binary.hpp"
#include "admin/canary_run.hpp"
#include "admin/check.hpp"
#include "admin/directories.hpp"
#include "admin/program.hpp"
#include "admin/session_ends.hpp"
#include "admin/sudoers.hpp"
#include "build_config.hpp"
#include "common/fd.hpp"
#include "common/policy_load.hpp"

#include <fcntl.h>
#include <sys/file.h>

namespace pi_agent {

namespace {

constexpr const char *sudoers_directory = "/etc/sudoers.d";
constexpr const char *lock_path = "/run/pi-agentctl.lock";

// Two at once would take each other's temporary files. Nobody but root can open the lock, so nobody else can hold it.
UniqueFd take_lock(const AsRoot & /*root*/)
{
    auto lock =
        UniqueFd::adopt(::open(lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)); // NOLINT(cppcoreguidelines-pro-type-vararg)
    if (!lock) throw_errno(std::string("cannot open ") + lock_path);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno == EWOULDBLOCK) throw Failure(ExitStatus::limit, "another 'pi-agentctl apply' is running; wait for it");
    throw_errno(std::string("cannot lock ") + lock_path);
}

void enable(const AsRoot &root, const Policy &policy, const Observer &observer, Changes &changes)
{
    Problems problems;
    check_installed_files(problems);
    check_host(policy, observer, problems);
    problems.throw_if_any();
    for (const auto *program : {"visudo", "systemd-sysusers"})
        require_program(program);
    const auto accounts = needed_agent_accounts(policy, group_members);
    create_accounts(root, policy, accounts, changes);
    make_state_directories(root, policy, changes);
    hide_agent_binary(root, policy, changes);
    install_sudoers(root, sudoers_directory, sudoers_text(policy, policy_path, PI_AGENT_RUNNER_PATH), changes);
}

void require_ended(const std::vector<std::string> &living)
{
    if (living.empty()) return;
    std::string units;
    for (const auto &session : living)
        units += " pi-agent-" + session + ".service";
    throw Failure(ExitStatus::system_failure,
                  "sessions that the policy does not allow any more do not end; look at them: systemctl status" + units);
}

} // namespace

void run_apply(bool dry_run, bool try_sandbox, std::ostream &out, std::ostream &warnings)
{
    const auto observer = Observer::self();
    if (!observer.root())
        throw Failure(ExitStatus::denied, "apply changes the host, so only root can run it; try 'sudo pi-agentctl apply'");
    const auto &root = *observer.root();
    auto lock = take_lock(root);
    const auto policy = load_policy(policy_path);
    Changes changes(dry_run, out);
    std::vector<std::string> living;
    if (policy.wrapper.enable) {
        // First: what may be wrong with the host keeps no session alive.
        living = end_unauthorised_sessions(root, policy, changes);
        enable(root, policy, observer, changes);
        warn(find_warnings(policy), warnings);
    } else {
        // The emergency stop depends on nothing else: whatever may be wrong with the host, the rule goes.
        out << to_string(policy.wrapper.where) << ": wrapper.enable is false: nobody may start pi\n";
        remove_sudoers(root, sudoers_directory, changes);
        living = end_unauthorised_sessions(root, policy, changes);
    }
    require_ended(living);
    if (changes.count() == 0) out << "nothing to do\n";
    if (dry_run || !try_sandbox || !policy.wrapper.enable) return;
    out.flush();
    lock.reset(); // what follows is a process of a user's: it keeps no other apply, and no emergency stop, waiting
    const auto report = run_canary(policy, observer, std::nullopt);
    const auto text = to_text(report);
    if (report.user.empty())
        warnings << "pi-agentctl: warning: " << text << '\n';
    else if (!report.is_good())
        throw Failure(ExitStatus::unavailable, "the policy is applied, but " + text);
}

} // namespace pi_agent
