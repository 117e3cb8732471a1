// Hears a question as its user, and answers it within bounds of number, size and time, with few rights.
#include "runner/root/own/questions.hpp"

#include "common/policy/policy_load.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_user/project.hpp"
#include "runner/root/confined/root_confinement.hpp"
#include "runner/root/confined/session_end.hpp"
#include "runner/root/door/admission.hpp"
#include "runner/root/door/process_state.hpp"
#include "runner/root/method/own_group.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/own/session_views.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

namespace pi_agent {

namespace {

constexpr int look_patience_seconds = 30;
constexpr int reply_patience_seconds = 5;
constexpr const char *stop_reason = "its user ended it (pi-agentctl stop)";

// Nothing in the question says whose sessions it is about.
std::optional<Uid> whose(const Account &caller)
{
    return defence_is_on("own-sessions") ? std::optional(caller.uid) : std::nullopt;
}

// File systems that their agent filled are waited for: so a child looks, which has given up what it does not need, and which is killed when
// its time is over.
OwnAnswer look(const AsRoot &root, const Account &caller, const Policy &policy, OwnSubject about)
{
    Child looking(root, "look at your sessions", [&] {
        confine_root(root);
        // --- confined root from here ---
        OwnAnswer answer;
        if (about == OwnSubject::state)
            answer.states = measure_states(root, policy.agent.state_dir, whose(caller) ? std::optional(caller.name) : std::nullopt);
        else
            answer.sessions = look_at_sessions(root, whose(caller));
        return encode(answer);
    });
    return std::get<OwnAnswer>(decode_reply(looking.receive_long(look_patience_seconds)));
}

OwnAnswer stop(const AsRoot &root, const Account &caller, const OwnQuestion &question)
{
    OwnAnswer answer;
    std::vector<EndOrder> orders;
    for (auto &session : look_at_sessions(root, whose(caller)))
        if (is_asked_for(session.id, question.sessions)) {
            orders.push_back({session.id, stop_reason});
            answer.sessions.push_back(std::move(session));
        }
    if (!orders.empty()) answer.left = end_sessions(root, orders);
    std::erase_if(answer.sessions, [&](const SessionView &session) {
        return std::find(answer.left.begin(), answer.left.end(), session.id) != answer.left.end();
    });
    return answer;
}

// What a question holds until its answer is sent.
struct Held {
    UniqueFd slot; // counts as one question of the caller's
    UniqueFd termination;
    std::optional<OwnGroup> group; // under bwrap
};

// As a start does, and by the same means: what root does for a question touches what others share.
void leave_callers_group(const AsRoot &root, SandboxMethod method, Uid user, Held &held, const std::function<void()> &meanwhile)
{
    const std::string id = make_session_id(); // of no session: it names the group alone
    if (!has_unit(method)) {
        held.group.emplace(root, id, user);
        return meanwhile();
    }
    SystemdBus systemd(root);
    MoveIntoScope move(systemd, scope_name(id), user); // whatever fails meanwhile, this waits for the move
    meanwhile();
    move.wait();
    sweep_empty_scopes(systemd, id);
}

OwnAnswer hear_and_answer(const AsRoot &root, const Account &caller, FdRef wrapper, Held &held)
{
    require_host_namespaces(root);
    held.slot = take_question_slot(root, caller.uid);
    Policy policy = load_policy_to_start(policy_path, caller.name);
    reset_process_state(root);
    held.termination = watch_termination(); // an end that has begun is finished, whatever signal sudo passes on
    leave_callers_group(root, policy.sandbox.method, caller.uid, held, [&] { admit(policy, caller); });
    // --- from here the caller can neither freeze nor kill this process ---
    const auto question = ask(
        root, {"receiver of the question", caller, {wrapper.get()}}, [&](const AsUser & /*user*/) { return receive_question(wrapper); },
        decode_question);
    return question.about == OwnSubject::stop ? stop(root, caller, question) : look(root, caller, policy, question.about);
}

FailureReport refuse(SessionRecord &record, const Failure &failure)
{
    std::string text = failure.what();
    try { // what is not denied is nobody's business but the user's
        if (failure.status() == ExitStatus::denied) record.failed(failure.status(), "asked about sessions: " + text, failure.kind());
    } catch (const Failure &unrecorded) {
        text += std::string("\n") + unrecorded.what();
    }
    return {failure.status(), text, failure.kind()};
}

} // namespace

bool is_asked_for(const std::string &id, const std::vector<std::string> &asked)
{
    return std::any_of(asked.begin(), asked.end(),
                       [&](const std::string &word) { return defence_is_on("whole-id") ? id == word : id.starts_with(word); });
}

bool holds_question(FdRef wrapper)
{
    std::string beginning(sizeof(OwnQuestion::type), '\0');
    iovec part{beginning.data(), beginning.size()};
    ssize_t length = -1;
    do {
        msghdr message{}; // without room for descriptors: those of a request stay with it
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        length = recvmsg(wrapper.get(), &message, MSG_PEEK | MSG_DONTWAIT);
    } while (length < 0 && (errno == EINTR || errno == ECONNRESET)); // the kernel reports the second once
    return length == static_cast<ssize_t>(beginning.size()) && beginning == Encoder().number(OwnQuestion::type).bytes();
}

int answer_question(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record)
{
    Held held;
    OwnReply reply;
    try {
        reply = hear_and_answer(root, caller, wrapper, held);
    } catch (const Failure &failure) {
        reply = refuse(record, failure);
    } catch (const std::exception &failure) {
        reply = FailureReport{ExitStatus::internal, std::string("internal error: ") + failure.what(), FailureKind::other};
    }
    try {
        send_record(wrapper, encode(reply), {}, in_seconds(reply_patience_seconds));
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: who asked is gone, or does not read
    }
    const auto *failed = std::get_if<FailureReport>(&reply);
    return failed != nullptr ? static_cast<int>(failed->status) : 0;
}

} // namespace pi_agent
