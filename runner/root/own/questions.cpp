// Hears a question as its user, and answers it within bounds of number, size and time, with few rights.
#include "runner/root/own/questions.hpp"

#include "common/policy/policy_load.hpp"
#include "runner/as_user/project.hpp"
#include "runner/root/confined/root_confinement.hpp"
#include "runner/root/confined/session_end.hpp"
#include "runner/root/door/admission.hpp"
#include "runner/root/door/process_state.hpp"
#include "runner/root/method/own_group.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/own/record_reader.hpp"
#include "runner/root/own/session_views.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

namespace pi_agent {

// Looks, in a process that has few rights and little time, and ends what its user asks to end.

namespace {

constexpr int look_patience_seconds = 30;
constexpr const char *stop_reason = "its user ended it (pi-agentctl stop)";

// Nothing in the question says whose sessions it is about.
std::optional<Uid> whose(const Account &caller)
{
    return defence_is_on("own-sessions") ? std::optional(caller.uid) : std::nullopt;
}

OwnAnswer look(const AsRoot &root, const Account &caller, const Policy &policy, const OwnQuestion &question)
{
    OwnAnswer answer;
    if (question.about == OwnSubject::state) {
        answer.states = measure_states(root, policy.agent.state_dir, whose(caller) ? std::optional(caller.name) : std::nullopt);
        return answer;
    }
    // Of a history first those that live: what ends in between has its end in the record.
    answer.sessions = look_at_sessions(root, whose(caller));
    if (question.about == OwnSubject::sessions) return answer;
    RecordRead record = read_own_record(root, caller, question.since > 0 ? std::optional(question.since) : std::nullopt,
                                        question.about == OwnSubject::history ? RecordPart::starts : RecordPart::connections);
    answer.entries = std::move(record.entries);
    answer.is_cut = record.is_cut;
    return answer;
}

// What its user's own wrapper wrote is read here, and file systems that their agent filled are waited for: so a child looks, which has
// given up what it does not need, and which is killed when its time is over.
OwnAnswer look_confined(const AsRoot &root, const Account &caller, const Policy &policy, const OwnQuestion &question)
{
    Child looking(root, "look at your sessions", [&] {
        bound_memory_of_reader();
        confine_root(root);
        // --- confined root from here ---
        return encode(look(root, caller, policy, question));
    });
    return std::get<OwnAnswer>(decode_reply(looking.receive_long(look_patience_seconds)));
}

OwnAnswer stop(const AsRoot &root, const Account &caller, const OwnQuestion &question)
{
    OwnAnswer answer;
    answer.sessions = look_at_sessions(root, whose(caller));
    std::vector<std::string> own;
    for (const auto &session : answer.sessions)
        own.push_back(session.id);
    const auto found = find_own(own, question.sessions);
    std::vector<EndOrder> orders;
    for (const auto &id : found)
        orders.push_back({id, stop_reason});
    if (!orders.empty()) answer.left = end_sessions(root, orders);
    const auto has = [](const std::vector<std::string> &ids, const std::string &id) {
        return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    std::erase_if(answer.sessions, [&](const SessionView &session) { return !has(found, session.id) || has(answer.left, session.id); });
    return answer;
}

} // namespace

std::vector<std::string> find_own(const std::vector<std::string> &own, const std::vector<std::string> &asked)
{
    const auto is_meant = [](const std::string &id, const std::string &word) {
        return defence_is_on("whole-id") ? id == word : id.starts_with(word);
    };
    std::vector<std::string> found;
    for (const auto &id : own)
        if (std::any_of(asked.begin(), asked.end(), [&](const std::string &word) { return is_meant(id, word); })) found.push_back(id);
    return found;
}

OwnAnswer answer_own(const AsRoot &root, const Account &caller, const Policy &policy, const OwnQuestion &question)
{
    return question.about == OwnSubject::stop ? stop(root, caller, question) : look_confined(root, caller, policy, question);
}

// Hears a question as its user, and answers it within bounds of number, size and time.

namespace {

constexpr int reply_patience_seconds = 5;

UniqueFd take_slot(const AsRoot &root, const Account &caller)
{
    require_host_namespaces(root);
    return take_question_slot(root, caller.uid);
}

UniqueFd reset_process(const AsRoot &root)
{
    reset_process_state(root);
    return watch_termination(); // an end that has begun is finished, whatever signal sudo passes on
}

// Out of the caller's control group, as a start is, and by the same means: what root does for a question touches what others share.
class OwnGroupForQuestion {
public:
    OwnGroupForQuestion(const AsRoot &root, SandboxMethod method, Uid user, const std::function<void()> &meanwhile)
    {
        const std::string id = make_session_id(); // of no session: it names the group alone
        if (!has_unit(method)) {
            group_.emplace(root, id, user);
            meanwhile();
            return;
        }
        SystemdBus systemd(root);
        MoveIntoScope move(systemd, scope_name(id), user); // whatever fails meanwhile, this waits for the move
        meanwhile();
        move.wait();
        sweep_empty_scopes(systemd, id);
    }

private:
    std::optional<OwnGroup> group_; // under bwrap
};

// What a question holds until it is answered, in the order in which it is taken.
class Asked {
public:
    Asked(const AsRoot &root, const Account &caller, FdRef wrapper)
        : slot_(take_slot(root, caller)), policy_(load_policy_to_start(policy_path, caller.name)), termination_(reset_process(root)),
          group_(root, policy_.sandbox.method, caller.uid, [&] { admit(policy_, caller); }),
          // --- from here the caller can neither freeze nor kill this process ---
          question_(ask(
              root, {"receiver of the question", caller, {wrapper.get()}},
              [&](const AsUser & /*user*/) { return receive_question(wrapper); }, decode_question))
    {
    }

    [[nodiscard]] OwnAnswer answer(const AsRoot &root, const Account &caller) const { return answer_own(root, caller, policy_, question_); }

private:
    UniqueFd slot_; // counts as one question of the caller's
    Policy policy_;
    UniqueFd termination_;
    OwnGroupForQuestion group_;
    OwnQuestion question_;
};

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
    std::optional<Asked> asked; // until the answer is sent
    OwnReply reply;
    try {
        asked.emplace(root, caller, wrapper);
        reply = asked->answer(root, caller);
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
