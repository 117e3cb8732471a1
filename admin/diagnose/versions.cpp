// Asks each part for its version.
#include "admin/diagnose/faults.hpp"

#include "admin/host/accounts.hpp"
#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/base/version.hpp"
#include "runner/root/method/systemd_bus.hpp"
#include "runner/root/session/session_directory.hpp"

#include <nlohmann/json.hpp>
#include <sys/utsname.h>

namespace pi_agent {

namespace {

constexpr int agent_patience_seconds = 30;

// What a part says of its version, or why it is not known.
template <typename Ask>
nlohmann::json answer_of(const Ask &ask)
{
    try {
        return {{"version", ask()}};
    } catch (const Failure &failure) {
        return {{"version", nullptr}, {"problem", failure.what()}};
    }
}

std::string kernel_version()
{
    utsname names{};
    if (::uname(&names) != 0) throw_errno("asking for the kernel's version");
    return std::string(names.sysname) + " " + names.release;
}

// The program belongs to root, but its behaviour is its own: it runs as another account, without a terminal, and for a limited time.
std::string ask_program(const AsRoot &root, const Policy &policy)
{
    // It runs as the agent's account and outside of every sandbox, so no agent may run inside one at the same time.
    if (!live_sessions(root).empty()) throw Failure(ExitStatus::unavailable, "agents are running; ask again when none runs");
    for (const auto &needed : needed_agent_accounts(policy, group_members)) {
        const auto account = find_account(needed.name);
        if (!account || account->uid == Uid(0)) continue;
        const auto group = find_group(policy.agent.group).value_or(account->gid); // it may be hidden from everybody else
        const auto result = run_confined_to_group(root, account->uid,
                                                  {"setpriv", "--reuid", std::to_string(account->uid.value()), "--regid",
                                                   std::to_string(group.value()), "--clear-groups", "--no-new-privs", "--bounding-set=-all",
                                                   "--inh-caps=-all", "--reset-env", "env", "--chdir=/", policy.agent.binary, "--version"},
                                                  agent_patience_seconds);
        if (result.status == 0) return one_line(result.output);
        throw Failure(ExitStatus::unavailable, policy.agent.binary + " --version ended with status " + std::to_string(result.status) +
                                                   ": " + one_line(result.output));
    }
    throw Failure(ExitStatus::unavailable, "no agent's account exists yet; run 'sudo pi-agentctl apply'");
}

std::string ask_agent()
{
    const auto observer = Observer::self();
    if (!observer.root()) throw Failure(ExitStatus::denied, "only root can ask the agent's program, which is hidden from others");
    return ask_program(*observer.root(), load_policy(policy_path));
}

} // namespace

void run_version(bool json, std::ostream &out)
{
    const nlohmann::json answers = {{"pi_agent", {{"version", to_string(running_version())}}},
                                    {"systemd", answer_of(SystemdBus::version_for_anybody)},
                                    {"kernel", {{"version", kernel_version()}}},
                                    {"agent", answer_of(ask_agent)}};
    if (json) return print_json(answers, out);
    for (const auto &[label, part] :
         {std::pair{"pi-agent: ", "pi_agent"}, {"systemd:  ", "systemd"}, {"kernel:   ", "kernel"}, {"agent:    ", "agent"}}) {
        const auto &answer = answers[part];
        const bool is_known = answer["version"].is_string();
        out << label << (is_known ? "" : "not known: ") << answer[is_known ? "version" : "problem"].get<std::string>() << '\n';
    }
}

} // namespace pi_agent
