// Who called and whether the accounts are fit; then letting in, or refusing.
#include "runner/root/door/admission.hpp"

#include "common/policy/policy_load.hpp"
#include "runner/root/kernel/host_facts.hpp"
#include "runner/root/view/root_tree.hpp"

#include <sys/socket.h>

#include <cstdlib>
#include <limits>
#include <thread>

namespace pi_agent {

// Who called, and whether the accounts that a session needs are fit for it.

namespace {

template <typename Value>
Value socket_option(FdRef channel, int option)
{
    Value value{};
    if (socklen_t length = sizeof value; getsockopt(channel.get(), SOL_SOCKET, option, &value, &length) != 0 || length != sizeof value)
        throw Failure(FailureKind::by_hand, "denied: standard input is not a socket of pi; pi runs this program; do not run it by hand");
    return value;
}

Account find_existing(const AccessRules &rules, const Account &caller)
{
    std::optional<Account> agent = find_account(rules.agent_account);
    if (agent) return std::move(*agent);
    const bool by_group = !rules.roots.empty() && rules.roots.front().by_group.has_value();
    const std::string late =
        by_group
            ? "; " + caller.name + " may have joined the group after the last apply: ask the administrator to run: sudo pi-agentctl apply"
            : "; ask the administrator to run: sudo pi-agentctl apply";
    throw Failure(FailureKind::agent_account,
                  "the agent's account " + rules.agent_account + " (" + to_string(rules.where) + ") does not exist" + late);
}

// The id map of the project would swap the caller's own uid or primary group with itself, and the agent would have the user's rights
// everywhere.
void require_nobodys(const Policy &policy, const AccessRules &rules, const Account &agent, const Account &caller)
{
    const std::string who = "the agent's account " + rules.agent_account + " (" + to_string(rules.where) + ") ";
    const std::string remedy = "; ask the administrator to give it a uid and a primary group of its own, or to name another account";
    if (agent.uid.value() == 0 || agent.uid == caller.uid || agent.gid.value() == 0)
        throw Failure(FailureKind::agent_account, who + "is root's or your own" + remedy);
    if (!defence_is_on("agents-numbers")) return;
    if (std::find(agent.groups.begin(), agent.groups.end(), caller.gid.value()) != agent.groups.end())
        throw Failure(FailureKind::agent_account, who + "is in the primary group of " + caller.name + remedy);
    for (const auto &entry : policy.users) {
        if (entry.is_group) continue;
        if (const std::optional<Account> user = find_account(entry.name); user && user->uid == agent.uid)
            throw Failure(FailureKind::agent_account,
                          who + "has the uid of " + entry.name + ", a user of the policy (" + to_string(entry.where) + ")" + remedy);
    }
}

[[noreturn]] void refuse_group(const AccessRules &rules, const std::string &group)
{
    const std::string command = command_about(rules.agent_account, {"gpasswd", "-d", rules.agent_account, group}, "");
    throw Failure(FailureKind::agent_account,
                  "the agent's account " + rules.agent_account + " is in the group " + group +
                      ", which gives it control of the host or of a user's files; ask the administrator to take it out of that group" +
                      (command.empty() ? "" : " (" + command + ")") + ", or to name another account");
}

void require_caller_is_no_agent(const Policy &policy, const Account &caller)
{
    if (!defence_is_on("agents-numbers")) return;
    std::vector<std::string> names = {policy.agent.user};
    for (const auto &entry : policy.users)
        if (!entry.is_group)
            names.push_back(find_agent_account_name(policy, entry.name, entry.run_as));
        else if (entry.run_as)
            names.push_back(*entry.run_as);
    for (const auto &name : names) {
        if (const std::optional<Account> agent = find_account(name); agent && agent->uid == caller.uid)
            throw Failure(FailureKind::caller, "denied: " + caller.name + " has the uid of " + name +
                                                   ", an agent's own account; pi cannot start inside a session");
    }
}

// Letting in, or refusing.

bool are_same(const Account &before, const std::optional<Account> &now)
{
    return now && now->name == before.name && now->uid == before.uid && now->gid.value() == before.gid.value() &&
           have_same_groups(*now, before);
}

constexpr int slot_patience_seconds = 3; // less than the wait for one that sends nothing

// Of one user, each slot for one at once: what starts, or what asks.
struct Slots {
    const char *file; // in /run/pi-agent
    std::size_t limit;
    bool (*is_limited)();
    const char *refusal; // after the limit
};
constexpr Slots start_slots = {"starts", start_limit, [] { return defence_is_on("start-limit"); },
                               " sessions of yours are already starting; try again in a moment"};
constexpr Slots question_slots = {"questions", question_slot_limit, [] { return defence_is_on("question-limit"); },
                                  " questions of yours about your sessions are already being answered; ask again in a moment"};

// Empty where all slots are taken.
UniqueFd try_slot(const Slots &kind, Uid user)
{
    static_assert(sizeof(off_t) == 8, "each user's bytes are their own");
    const UniqueFd parent = open_runtime_directory();
    // Nothing is ever written into the file, and a lock leaves nothing behind: not of users that are gone, and nothing that a start could
    // find half removed.
    UniqueFd slots =
        open_or_throw(std::string("opening the file of slots for ") + kind.file, parent, kind.file, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    for (std::size_t number = 0; number < kind.limit; ++number) {
        struct flock slot {};
        slot.l_type = F_WRLCK;
        slot.l_whence = SEEK_SET;
        slot.l_start = static_cast<off_t>(user.value()) * static_cast<off_t>(kind.limit) + static_cast<off_t>(number);
        slot.l_len = 1;
        if (fcntl(slots.get(), F_OFD_SETLK, &slot) == 0) return slots; // the lock belongs to the descriptor, in whichever process
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) throw_errno(std::string("locking a slot for ") + kind.file);
        if (!kind.is_limited()) return slots;
    }
    return UniqueFd();
}

UniqueFd take_slot(const Slots &kind, Uid user)
{
    UniqueFd slot = try_slot(kind, user);
    if (!slot) throw Failure(FailureKind::session_limit, "limit: " + std::to_string(kind.limit) + kind.refusal);
    return slot;
}

} // namespace

std::optional<Uid> parse_uid(const std::string &text) noexcept
{
    if (!defence_is_on("strict-uid")) return Uid(static_cast<uid_t>(std::strtoul(text.c_str(), nullptr, 10)));
    const auto value = to_number<uid_t>(text); // takes no sign and no space
    if (!value || *value == std::numeric_limits<uid_t>::max() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
    return Uid(*value);
}

Account authenticate(const AsRoot & /*root*/, FdRef channel, const std::optional<std::string> &sudo_uid)
{
    const bool seqpacket = socket_option<int>(channel, SO_DOMAIN) == AF_UNIX && socket_option<int>(channel, SO_TYPE) == SOCK_SEQPACKET;
    if (!seqpacket && defence_is_on("channel-type"))
        throw Failure(FailureKind::by_hand,
                      "denied: standard input is a socket, but not one of pi; pi runs this program; do not run it by hand");
    const auto peer = socket_option<ucred>(channel, SO_PEERCRED);
    if (!sudo_uid) throw Failure(FailureKind::by_hand, "denied: not called through sudo; run pi as the user it is for");
    const std::optional<Uid> caller = parse_uid(*sudo_uid);
    if (!caller) throw Failure(FailureKind::by_hand, "denied: SUDO_UID is not a user id");
    if (caller->value() == 0) throw Failure(FailureKind::root_caller, "denied: root cannot run the agent; run pi as an ordinary user");
    if (peer.uid != caller->value() && defence_is_on("peer-credentials"))
        throw Failure(FailureKind::by_hand, "denied: the socket on standard input was made by uid " + std::to_string(peer.uid) +
                                                ", but sudo was called by uid " + *sudo_uid);
    std::optional<Account> account = find_account(*caller);
    if (!account)
        throw Failure(FailureKind::caller, "denied: uid " + *sudo_uid + " is not in the user database of this host; ask the administrator");
    return *account;
}

Account find_agent(const Policy &policy, const AccessRules &rules, const Account &caller)
{
    require_caller_is_no_agent(policy, caller);
    Account agent = find_existing(rules, caller);
    require_nobodys(policy, rules, agent, caller);
    const std::string primary = group_name(agent.gid).value_or("");
    if (is_privileged_group(primary) && defence_is_on("privileged-groups")) refuse_group(rules, primary);
    return agent;
}

Account without_other_groups(Account agent)
{
    agent.groups = {agent.gid.value()};
    return agent;
}

void require_harmless_groups(const Policy &policy, const AccessRules &rules, const Account &agent)
{
    const std::vector<std::string> forbidden = forbidden_groups_of(policy, agent);
    if (!forbidden.empty()) refuse_group(rules, forbidden.front());
}

Policy load_enabled_policy(const Account &caller)
{
    Policy policy = load_policy_to_start(policy_path, caller.name);
    if (!policy.wrapper.enable)
        throw Failure(FailureKind::switched_off, "denied: the administrator has switched the agent off (" +
                                                     to_string(policy.wrapper.where) +
                                                     ", wrapper.enable: false); ask them when it is back");
    return policy;
}

void require_not_drained(const AsRoot &root, const Account &caller, std::optional<Program> program)
{
    const auto drain = find_drain(root);
    if (!drain || !defence_is_on("drain")) return;
    // Only root's own try of the sandbox: a user who asks for a canary is refused as for anything else.
    if (program.value_or(Program::canary) == Program::canary && may_canary_start(root, caller.uid)) return;
    throw Failure(FailureKind::drained,
                  "limit: the administrator lets no session start on this host for now; sessions that run go on, so try "
                  "again later" +
                      (drain->message.empty() ? "" : ". The administrator says: " + escape_for_display(drain->message)));
}

UniqueFd require_in_job(const AsRoot &root, const Account &caller, const Policy &policy, Program program)
{
    UniqueFd job;
    if (!has_jobs(policy) || !defence_is_on("jobs-alone")) return job;
    job = find_job(root);
    if (job || (program == Program::canary && may_canary_start(root, caller.uid))) return job; // that one tries this very host
    throw Failure(
        FailureKind::outside_job,
        "denied: your sessions run in jobs of the cluster alone (" + to_string(policy.rules.places.at("placement.engine").where) +
            ", placement.engine: slurm), and this start comes from elsewhere; type pi, which asks for a job, or start it inside of one: "
            "srun --pty pi");
}

StartStamp stamp_start(const Account &caller)
{
    return {policy_stamp(policy_path, caller.name), host_stamp()};
}

void require_same_conditions(const StartStamp &stamp, const Account &caller, const Account &agent)
{
    if (policy_stamp(policy_path, caller.name) != stamp.policy && defence_is_on("same-policy"))
        throw Failure(FailureKind::changed_meanwhile, "the policy changed while the session was being prepared; try again");
    if (host_stamp() != stamp.host && defence_is_on("same-host"))
        throw Failure(FailureKind::changed_meanwhile, "the administrator ran pi-agentctl while the session was being prepared; try again");
    if (!are_same(caller, find_account(caller.uid)) && defence_is_on("same-policy"))
        throw Failure(FailureKind::changed_meanwhile, "your account or its groups changed while the session was being prepared; try again");
    if (!are_same(agent, find_account(agent.name)) && defence_is_on("same-host"))
        throw Failure(FailureKind::changed_meanwhile,
                      "the agent's account " + agent.name + " changed while the session was being prepared; try again");
}

AccessRules authorise(const Policy &policy, const Account &caller)
{
    auto found = find_access_rules(policy, caller, policy_path);
    if (const auto *refused = std::get_if<NotAuthorised>(&found)) throw Failure(FailureKind::not_authorised, refused->text);
    return std::get<AccessRules>(std::move(found));
}

Admission admit(Policy &policy, const Account &caller)
{
    AccessRules rules = authorise(policy, caller);
    policy = policy_for(std::move(policy), rules);
    Account agent = find_agent(policy, rules, caller);
    return {std::move(rules), std::move(agent), plan_host_view(policy)};
}

OpenedProject open_allowed_project(Child &child, const Account &caller, const Admission &admission, Policy callers,
                                   const AskedOfStart &asked)
{
    auto opened = open_project(child, caller, admission.rules, admission.view, std::move(callers), asked);
    if (const auto *refused = std::get_if<Refused>(&opened)) throw Failure(FailureKind::outside_roots, refused->text);
    return std::move(std::get<OpenedProject>(opened)); // cppcheck-suppress returnStdMoveLocal ; it is a part of `opened`
}

void require_room(const AsRoot &root, const Account &caller, const LimitsPolicy &limits)
{
    const std::size_t allowed = in_force(limits, &LimitsPolicy::sessions);
    if (count_sessions(root, caller.uid) <= allowed || !defence_is_on("session-limit")) return;
    const std::string place =
        limits.sessions ? "limits.sessions, " + to_string(limits.sessions->where) : "the default of limits.sessions in the policy";
    throw Failure(FailureKind::session_limit, "limit: " + caller.name + " has " + std::to_string(allowed) +
                                                  (allowed == 1 ? " session" : " sessions") + ", the most that a user may have at once (" +
                                                  place +
                                                  "); quit one, or list and end them: pi-agentctl sessions, pi-agentctl stop SESSION");
}

void require_locked_sessions(const AsRoot &root, const Account &caller, const std::string &id, const char *file, const char *key)
{
    if (!has_session_without(root, file, caller.uid, id) || !defence_is_on("locked-sessions")) return;
    throw Failure(FailureKind::busy, std::string("limit: the policy locks ") + file + " (" + key + "), and a session of " + caller.name +
                                         " began before that; quit it, or run: pi-agentctl stop --user " + name_as_word(caller.name) +
                                         "; then try again");
}

UniqueFd take_start_slot(const AsRoot & /*root*/, Uid user)
{
    return take_slot(start_slots, user);
}

UniqueFd take_question_slot(const AsRoot & /*root*/, Uid user)
{
    return take_slot(question_slots, user);
}

UniqueFd wait_for_start_slot(const AsRoot &root, Uid user, const std::function<void()> &waiting)
{
    for (const Deadline deadline = in_seconds(slot_patience_seconds); Clock::now() < deadline;) {
        if (UniqueFd slot = try_slot(start_slots, user)) return slot;
        waiting();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return take_start_slot(root, user);
}

} // namespace pi_agent
