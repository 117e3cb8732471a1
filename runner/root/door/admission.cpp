// Letting in, or refusing.
#include "runner/root/door/admission.hpp"

#include "common/base/text.hpp"
#include "common/decide/effective.hpp"
#include "common/decide/placement.hpp"
#include "common/host/remedy.hpp"
#include "common/policy/policy_load.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/limits.hpp"
#include "runner/root/door/authenticate.hpp"
#include "runner/root/kernel/cluster_job.hpp"
#include "runner/root/session/drain.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/view/root_tree.hpp"

#include <thread>

namespace pi_agent {

namespace {

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
};
constexpr Slots start_slots = {"starts", start_limit, [] { return defence_is_on("start-limit"); }};
constexpr Slots question_slots = {"questions", question_slot_limit, [] { return defence_is_on("question-limit"); }};

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

} // namespace

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
    const std::size_t allowed = limits.sessions ? limits.sessions->amount : session_limit;
    if (count_sessions(root, caller.uid) <= allowed || !defence_is_on("session-limit")) return;
    const std::string place =
        limits.sessions ? "limits.sessions, " + to_string(limits.sessions->where) : "the default of limits.sessions in the policy";
    throw Failure(FailureKind::session_limit, "limit: " + caller.name + " has " + std::to_string(allowed) +
                                                  (allowed == 1 ? " session" : " sessions") + ", the most that a user may have at once (" +
                                                  place +
                                                  "); quit one, or list and end them: pi-agentctl sessions, pi-agentctl stop SESSION");
}

void require_locked_sessions(const AsRoot &root, const Account &caller, const std::string &id)
{
    if (!has_unlocked_session(root, caller.uid, id) || !defence_is_on("locked-sessions")) return;
    throw Failure(FailureKind::busy, "limit: the policy locks settings.json (settings_lock), and a session of " + caller.name +
                                         " began before that; quit it, or run: pi-agentctl stop --user " + name_as_word(caller.name) +
                                         "; then try again");
}

UniqueFd take_start_slot(const AsRoot & /*root*/, Uid user)
{
    UniqueFd slot = try_slot(start_slots, user);
    if (!slot)
        throw Failure(FailureKind::session_limit,
                      "limit: " + std::to_string(start_limit) + " sessions of yours are already starting; try again in a moment");
    return slot;
}

UniqueFd take_question_slot(const AsRoot & /*root*/, Uid user)
{
    UniqueFd slot = try_slot(question_slots, user);
    if (!slot)
        throw Failure(FailureKind::session_limit, "limit: " + std::to_string(question_slot_limit) +
                                                      " questions of yours about your sessions are already being answered; ask again in a "
                                                      "moment");
    return slot;
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
