// Asking each part for its version.
#include "admin/diagnose/faults.hpp"

#include "admin/diagnose/user_view.hpp"
#include "admin/host/accounts.hpp"
#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/version.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy_load.hpp"
#include "runner/root/method/systemd_bus.hpp"
#include "runner/root/session/session_list.hpp"

#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int agent_patience_seconds = 30;

struct Answer {
    std::string version; // empty where it is not known
    std::string problem; // why not
};

Answer ask_systemd()
{
    try {
        return {SystemdBus::version_for_anybody(), ""};
    } catch (const Failure &failure) {
        return {"", failure.what()};
    }
}

std::string kernel_version()
{
    utsname names{};
    if (::uname(&names) != 0) throw_errno("asking for the kernel's version");
    return std::string(names.sysname) + " " + names.release;
}

// The program is root's, but what it does when it is asked is its own: so not as root, without a terminal, and with a bound.
Answer ask_program(const AsRoot &root, const Policy &policy)
{
    // What runs there as the agent's account, outside of every sandbox, is no neighbour for what runs inside.
    if (!live_sessions(root).empty()) return {"", "agents run now; ask again when none does"};
    for (const auto &needed : needed_agent_accounts(policy, group_members)) {
        const auto account = find_account(needed.name);
        if (!account || account->uid == Uid(0)) continue;
        const auto group = find_group(policy.agent.group).value_or(account->gid); // it may be hidden from everybody else
        const auto result = run_confined_to_group(root, account->uid,
                                                  {"setpriv", "--reuid", std::to_string(account->uid.value()), "--regid",
                                                   std::to_string(group.value()), "--clear-groups", "--no-new-privs", "--bounding-set=-all",
                                                   "--inh-caps=-all", "--reset-env", "env", "--chdir=/", policy.agent.binary, "--version"},
                                                  agent_patience_seconds);
        if (result.status == 0) return {one_line(result.output), ""};
        return {"", policy.agent.binary + " --version ended with status " + std::to_string(result.status) + ": " + one_line(result.output)};
    }
    return {"", "there is no agent's account yet to ask it as; run 'pi-agentctl apply'"};
}

Answer ask_agent()
{
    const auto observer = Observer::self();
    if (!observer.root()) return {"", "only root can ask the agent's program, for it is hidden"};
    try {
        return ask_program(*observer.root(), load_policy(policy_path));
    } catch (const Failure &failure) {
        return {"", failure.what()};
    }
}

std::string to_text(const Answer &answer)
{
    return answer.problem.empty() ? answer.version : "not known: " + answer.problem;
}

nlohmann::json to_json(const Answer &answer)
{
    return answer.problem.empty() ? nlohmann::json{{"version", answer.version}}
                                  : nlohmann::json{{"version", nullptr}, {"problem", answer.problem}};
}

} // namespace

void run_version(bool json, std::ostream &out)
{
    const auto systemd = ask_systemd();
    const auto agent = ask_agent();
    if (json)
        return print_json({{"pi_agent", {{"version", to_string(running_version())}}},
                           {"systemd", to_json(systemd)},
                           {"kernel", {{"version", kernel_version()}}},
                           {"agent", to_json(agent)}},
                          out);
    out << "pi-agent: " << to_string(running_version()) << "\nsystemd:  " << to_text(systemd) << "\nkernel:   " << kernel_version()
        << "\nagent:    " << to_text(agent) << '\n';
}

} // namespace pi_agent
