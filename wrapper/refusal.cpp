// The wrapper's own look at the policy, and at how a session's network is closed.
#include "wrapper/refusal.hpp"

#include "common/as_user/root_path.hpp"
#include "common/base/text.hpp"
#include "common/decide/effective.hpp"
#include "common/host/namespaces.hpp"
#include "common/policy/policy_load.hpp"
#include "common/record/record_event.hpp"

#include <csignal>
#include <filesystem>

namespace pi_agent {

// The ways in which a network is closed, by the policy or by an option of the start.

namespace {

// Who waits in vain gives up with Ctrl-C.
bool has_failed(const AgentEnded &ended)
{
    return ended.by_signal ? ended.value == SIGINT : ended.value != 0;
}

// What an option of the start leaves is loopback, or nothing (common/decide/effective.cpp).
const char *reached_in(const NetworkPolicy &network)
{
    if (network.mode == NetworkMode::none) return "no connection out of the session, so no model provider";
    if (network.mode == NetworkMode::loopback || is_of_start(network)) return "only services of this host, so no model provider elsewhere";
    if (network.mode == NetworkMode::hosts) return "only the hosts that it names";
    return "only the addresses of its list, which may lack those of the model provider or of the name server";
}

} // namespace

std::string closed_network_notice(const NetworkPolicy &network, const AgentEnded &ended)
{
    if (network.mode == NetworkMode::full || !has_failed(ended)) return "";
    const char *remedy = is_of_start(network) ? "start without that option" : "ask the administrator to change that key";
    return "if the agent could not connect: " + name_of(network) + " allows " + reached_in(network) + "; " + remedy;
}

// The wrapper's own look at the policy.

namespace {

Account find_caller()
{
    if (getuid() == 0 || geteuid() != getuid())
        throw Failure(FailureKind::root_caller, "denied: root cannot run the agent; run pi as an ordinary user");
    std::optional<Account> caller = find_account(Uid(getuid()));
    if (!caller)
        throw Failure(FailureKind::caller,
                      "denied: uid " + std::to_string(getuid()) + " is not in the user database of this host; ask the administrator");
    return *caller;
}

std::optional<JobCommand> job_of(const Policy &policy)
{
    if (!has_jobs(policy)) return std::nullopt;
    return JobCommand{srun_of(policy), srun_arguments(policy, {build::wrapper_path, node_option})};
}

EarlyLook look_early(FdRef cwd, const Narrowing &narrowing, const std::vector<std::string> &allow)
{
    require_sudo_can_work();
    const Account caller = find_caller();
    Policy policy = load_policy_to_start(policy_path, caller.name);
    if (!policy.wrapper.enable)
        throw Failure(FailureKind::switched_off, "denied: the administrator has switched the agent off (" +
                                                     to_string(policy.wrapper.where) +
                                                     ", wrapper.enable: false); ask them when it is back");
    auto found = find_access_rules(policy, caller, policy_path);
    if (const auto *refused = std::get_if<NotAuthorised>(&found)) throw Failure(FailureKind::not_authorised, refused->text);
    const AccessRules &all = std::get<AccessRules>(found);
    policy = policy_for(std::move(policy), all);
    StartPlaces places{{}, path_of_working_directory(cwd), mount_id(cwd)};
    AgentPlaces agents = places_of_state(policy, all);
    std::vector<bool> there;
    for (const auto &root : resolve_roots(all, caller)) {
        const GrantedRoot &granted = all.roots[there.size()];
        there.push_back(root.has_value());
        if (!root) continue;
        places.roots.push_back({root->path, granted.by_group, granted.spec.where, granted.spec.rules, mount_id(root->fd)});
        const struct stat facts = examine(root->fd, "examining a root");
        agents.places.push_back({root->path, facts.st_dev, facts.st_ino});
    }
    const AccessRules rules = with_roots_there(all, there);
    auto decision = decide_start(caller, rules, std::move(policy), places, {allow, narrowing}, {});
    if (const auto *refused = std::get_if<Refused>(&decision)) throw Failure(FailureKind::outside_roots, refused->text);
    policy = std::move(std::get<Start>(decision).policy);
    const std::string &root = places.roots[std::get<Start>(decision).root].path;
    const std::string &path = places.cwd;
    return {"allowed: " + escape_for_display(path) + " is in the root " + root + " (" + rules.entry + ", " + to_string(rules.where) + ")",
            path,
            root,
            caller.home,
            policy.projects,
            policy.network,
            policy.wrapper.clipboard,
            std::move(agents),
            paths_read_as_user(policy, rules, caller),
            job_of(policy)};
}

// Every refusal of its own, from wherever, is the kind that is recorded.
template <typename Look>
auto refusing(const Look &look)
{
    try {
        return look();
    } catch (const Failure &failure) {
        throw EarlyRefusal(failure);
    }
}

} // namespace

UniqueFd open_cwd()
{
    return refusing([] { return open_working_directory("."); });
}

EarlyLook refuse_early(FdRef cwd, const Narrowing &narrowing, const std::vector<std::string> &allow)
{
    return refusing([&] { return look_early(cwd, narrowing, allow); });
}

void record_refusal(const EarlyRefusal &refusal, Program program) noexcept
{
    constexpr int patience_milliseconds = 500;
    if (problem_of_user_namespace()) return; // its numbers are other users' on the host
    try {
        RecordSubject subject;
        subject.uid = Uid(getuid());
        if (const auto account = find_account(*subject.uid)) subject.user = account->name;
        subject.program = to_string(program);
        std::error_code unknown;
        subject.directory = std::filesystem::current_path(unknown).string();
        send_to_journal(record_fields(subject, DeniedEvent{refusal.status(), refusal.what(), refusal.kind()}, "pi"), patience_milliseconds);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the user is told in any case
    }
}

} // namespace pi_agent
