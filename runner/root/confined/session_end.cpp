// Watches a session and its gate, and ends it: for the runner, for the administrator, and for whoever finds the remains of one.
#include "runner/root/confined/session_end.hpp"

#include "runner/root/door/admission.hpp"

#include <sys/file.h>
#include <sys/socket.h>

#include <csignal>
#include <thread>

namespace pi_agent {

namespace {

constexpr int own_removal_seconds = 10;
constexpr const char *reason_link = "asked-end"; // leads nowhere: its text is the reason

// The session's runner; none when it is gone. It holds the session's lock for as long as it lives. So while the lock is held, a runner with
// this number is the right one; whoever removes what a dead one left holds the lock as well.
UniqueFd open_runner(FdRef session)
{
    const auto number = session_runner(session);
    if (!number) return {}; // the session is being made, or removed
    UniqueFd runner = open_process(*number);
    if (!runner && errno != ESRCH) throw_errno("looking at a session's runner");
    if (runner && (!is_runner(*number) || flock(session.get(), LOCK_SH | LOCK_NB) == 0)) return {};
    return runner;
}

// A failure here must not keep other sessions alive: one that gets no signal is among those that are left.
void send_signal(FdRef sessions, const EndOrder &order, int number) noexcept
{
    attempt_recorded(order.session, [&] {
        const UniqueFd session = try_open_session(sessions, order.session);
        if (!session) return; // over
        const UniqueFd runner = open_runner(session);
        if (!runner) return;
        // best_effort: without the reason the session still ends, and its user does not learn why.
        static_cast<void>(symlinkat(order.reason.c_str(), session.get(), reason_link) == 0);
        signal_process(runner, number, "ending a session");
    });
}

// Ends what the session confines. Its runner may not react even to a kill (it waits for a file system whose program does not answer), and
// systemd may not answer.
void end_confined(FdRef session, const std::string &id, Deadline deadline)
{
    const auto user = session_user(session);
    const auto unit = user ? group_of_unit(read_systemd_tops(), place_in_slice(*user, service_name(id))) : std::nullopt;
    const auto gate = user ? group_of_unit(read_systemd_tops(), place_in_slice(*user, gate_name(id))) : std::nullopt;
    const auto own = find_own_group(id);
    for (const auto *group : {&unit, &gate, &own})
        if (*group) kill_group(**group);
    for (const auto *group : {&unit, &gate, &own})
        if (*group) empty_group(**group, deadline);
}

// Does what the session's cleanup and the next sweep would do: both may be at it as well.
void finish_end(const AsRoot &root, FdRef sessions, const EndOrder &order, Deadline deadline) noexcept
{
    attempt_recorded(order.session, [&] {
        const UniqueFd session = try_open_session(sessions, order.session);
        if (!session || !defence_is_on("end-without-runner")) return;
        end_confined(session, order.session, deadline);
        if (flock(session.get(), LOCK_EX | LOCK_NB) != 0) return; // its runner is not gone yet
        if (record_end_of_killed(root, order.session, deadline)) remove_session_with_scratch(root, order.session, 1);
    });
}

// No process of the session runs, and its end is recorded. What it left may still await removal.
bool is_over(const UniqueFd &session)
{
    return !session || (flock(session.get(), LOCK_SH | LOCK_NB) == 0 && !has_open_end(session));
}

// The sessions that are not done at the end. One that cannot be looked at is looked at again, and counts as alive.
std::vector<EndOrder> wait_until(bool (*is_done)(const UniqueFd &), FdRef sessions, std::vector<EndOrder> orders, int seconds)
{
    const auto look = [&](const EndOrder &order) {
        try {
            return is_done(try_open_session(sessions, order.session));
        } catch (const std::exception &) {
            return false;
        }
    };
    const Deadline deadline = in_seconds(seconds);
    for (;;) {
        std::erase_if(orders, look);
        if (orders.empty() || Clock::now() >= deadline) return orders;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

bool wait_for_end(Sandbox &sandbox, Deadline deadline)
{
    for (sandbox.process(); !sandbox.result().ended; sandbox.process()) {
        if (Clock::now() >= deadline) return false;
        wait_for_input(sandbox.fd(), sandbox.next_look(deadline));
    }
    return true;
}

// What a sandbox reports that has ended by itself, with no agent in it; "" where it has not. A session whose unit ends is cleaned up at
// once, so any other failure at that time may come from it.
std::string words_of_early_end(Sandbox &sandbox) noexcept
{
    try {
        if (!wait_for_end(sandbox, Clock::now() + std::chrono::milliseconds(200))) return ""; // for a signal that is on its way
        return "the agent was not started: " + sandbox.explain(sandbox.result()) + sandbox.where_to_look();
    } catch (const std::exception &) { // then the original failure is reported
        return "";
    }
}

constexpr std::size_t recorded_at_once = 20;
constexpr std::size_t recorded_each_second = 10;
constexpr std::size_t recorded_in_all = 1000;
constexpr std::size_t counted_places = 200;
constexpr std::size_t heard_each_second = 2000; // a gate says some 250 at most (denials_a_second), and a late reader finds more
constexpr auto last_words = std::chrono::milliseconds(200);
constexpr std::size_t silences_told = 3; // a gate that the agent has taken over can be silent as often as it likes
constexpr const char *end_of_list = "(more is not listed here)\n";

std::uint64_t sum_of(std::uint64_t one, std::uint64_t other)
{
    return one + std::min(other, UINT64_MAX - one);
}

} // namespace

// --- Ends sessions: for the runner, for the administrator, and for whoever finds the remains of one. Sends signals to runners by
// descriptor: a number could belong to another process by now.

std::vector<std::string> end_sessions(const AsRoot &root, const std::vector<EndOrder> &orders)
{
    require_host_namespaces(root); // in others, the numbers of processes mean something else
    const UniqueFd sessions = open_sessions();
    for (const auto &order : orders)
        send_signal(sessions, order, SIGTERM);
    const std::vector<EndOrder> deaf = wait_until(is_over, sessions, orders, asked_end_patience_seconds);
    for (const auto &order : deaf)
        send_signal(sessions, order, SIGKILL);
    const std::vector<EndOrder> left =
        wait_until([](const UniqueFd &session) { return !session; }, sessions, orders, killed_end_patience_seconds);
    const Deadline deadline = in_seconds(forced_end_patience_seconds);
    for (const auto &order : left)
        finish_end(root, sessions, order, deadline);
    return mapped(wait_until(is_over, sessions, left, 0), [&](const auto &order) { return order.session; });
}

void Ending::explain() noexcept
{
    attempt_recorded("", [&] { // best_effort: the session still ends
        const std::string reason = explained_ ? "" : read_session_link(session_.fd(), reason_link);
        if (reason.empty()) return;
        explained_ = true;
        record_.because(reason);
        tell_("the session was ended: " + reason);
    });
}

AgentEnded Ending::run_recorded(const std::function<AgentEnded()> &run)
{
    AgentEnded ended{};
    try {
        ended = run();
    } catch (const Failure &failure) {
        explain();
        try {
            record_.failed(failure.status(), failure.what(), failure.kind());
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): main tries again, and tells the user
        }
        throw;
    }
    explain();
    try {
        if (!record_.knows_usage()) record_.take_usage(sandbox_.usage());
        record_.ended(ended);
    } catch (const Failure &failure) { // the agent has ended, whatever happens here
        tell_(std::string("the end of this session is not recorded: ") + failure.what());
    }
    return ended;
}

void Ending::end_after(const std::exception_ptr &problem)
{
    const std::string early = words_of_early_end(sandbox_);
    attempt_recorded(id_, [&] {
        sandbox_.stop();
        if (wait_for_end(sandbox_, in_seconds(sandbox_stop_seconds))) sandbox_has_ended();
    });
    if (early.empty()) return;
    try {
        std::rethrow_exception(problem); // EndedBySignal passes: pi ends by that signal
    } catch (const std::exception &failure) {
        throw Failure(ExitStatus::unavailable, early + "; meanwhile: " + failure.what());
    }
}

Ending::~Ending()
{
    explain();
    // The unit is bound to this process' scope. The scope lasts as long as any process in it, and that need not be this one.
    if (sandbox_may_live_ && defence_is_on("end-kills")) attempt_recorded(id_, [&] { sandbox_.kill(); });
    attempt_recorded(id_, [&] {
        const UniqueFd session = try_open_session(open_sessions(), id_);
        if (session && has_open_end(session)) return; // no record took that entry: the next sweep tries again
        if (!sandbox_may_live_ || !sandbox_.is_there()) remove_session_with_scratch(root_, id_, own_removal_seconds);
    });
}

void sweep(const AsRoot &root, Sandbox &sandbox)
{
    const Deadline deadline = in_seconds(1); // file systems of other users are involved, which need not answer
    for (const auto &orphan : find_orphans(root)) {
        bool is_known = false;
        try { // one user's leftover must not be another's refusal
            const UniqueFd session = try_open_session(open_sessions(), orphan);
            if (!session) continue;
            // Asks before locking: a holder of that lock counts as a session, and this one may only be in the middle of its end.
            if (sandbox.may_live(orphan)) continue;
            // Held until the session is removed: a start that has just made its directory waits for this lock, and then finds its directory
            // gone.
            if (flock(session.get(), LOCK_EX | LOCK_NB) != 0 && defence_is_on("sweep-lock")) {
                if (errno != EWOULDBLOCK) throw_errno("locking it");
                continue;
            }
            is_known = true;
            // Files on disk then have no session, and ScratchSweep finds them.
            if (!record_end_of_killed(root, orphan, deadline))
                throw Failure(ExitStatus::limit, "somebody else records its end; the next sweep goes on");
            remove_session(root, orphan, [&](FdRef left) {
                PlaceholderRemoval(root, orphan, left).finish(deadline);
                return true;
            });
            record_problem(orphan, "a session directory without a session was removed");
        } catch (const Failure &failure) {
            if (!defence_is_on("sweep-goes-on")) throw;
            record_problem(orphan, "a session directory without a session cannot be removed: ", failure.what());
            if (!is_known) return; // if it did not answer, it is not asked about the others either
        }
    }
}

// --- Takes what the session's gate says: within bounds of number, size and time.

void GateWatch::receive()
{
    try {
        const std::optional<std::string> packet = read_packet(said_, in_seconds(0));
        is_there_ = packet.has_value();
        if (packet) {
            if (says_too_much()) throw ProtocolError("it says more than a gate does");
            GateMessage message = decode_gate_message(*packet);
            is_there_ = !std::holds_alternative<GateFarewell>(message);
            if (auto *denial = std::get_if<GateDenial>(&message)) {
                is_full_ = is_full_ || denial->reason == DenialReason::no_room;
                take(std::move(*denial));
            }
        }
    } catch (const Failure &) { // it breaks the protocol, so it is not ours any more; or its socket does not work
        is_there_ = false;
    }
}

std::string GateWatch::hear()
{
    receive();
    if (!is_there_) {
        // The user is told that the agent reaches nothing any more. A gate that lives has its listeners, though nobody hears it: one that
        // says farewell looks as if it had ended, and one that the agent has taken over does not end because its channel does.
        shutdown(channel_.get(), SHUT_RDWR);
        if (defence_is_on("gate-killed")) attempt_recorded(session_, kill_, "its gate cannot be ended: ");
        return "the session's gate has ended, so the agent reaches nothing any more; start pi again. The administrator finds why with: "
               "journalctl -u " +
               gate_name(session_);
    }
    if (last_heard_) last_heard_ = Clock::now();
    if (is_full_ && !std::exchange(is_full_told_, true))
        return "the session's gate has no descriptor or memory left for new connections of the agent; those that there are go on, and "
               "others wait. The administrator sees its limits with: systemctl show " +
               gate_name(session_);
    if (!std::exchange(is_silent_, false) || silences_told_ > silences_told) return "";
    return "the session's gate goes on, and connections of the agent with it";
}

// Each packet costs this process a turn of its loop, whatever is in it. Only a gate that the agent has taken over says so many.
bool GateWatch::says_too_much()
{
    if (const auto now = Clock::now(); now - counted_since_ >= std::chrono::seconds(1)) {
        counted_since_ = now;
        heard_ = 0;
    }
    return ++heard_ > heard_each_second && defence_is_on("gate-rate");
}

Deadline GateWatch::due() const
{
    return is_there_ && last_heard_ && !is_silent_ ? *last_heard_ + gate_longest_silence : Deadline::max();
}

// Nothing has to be closed: a process that is stopped passes nothing on.
std::string GateWatch::look()
{
    if (Clock::now() < due()) return "";
    if (wait_for_input(said_, Clock::now())) return ""; // this process is the late one
    is_silent_ = true;
    if (++silences_told_ > silences_told || !defence_is_on("gate-silence")) return "";
    return "the session's gate has said nothing for two seconds, because it is stopped or this host is very busy; until it goes on, the "
           "agent reaches nothing. The administrator sees its state with: systemctl status " +
           gate_name(session_);
}

void GateWatch::take(GateDenial denial)
{
    if (!places_.contains(denial.where) && defence_is_on("denial-places")) denial.where.clear(); // no rule is there, whoever says so
    count(denial);
    write_down(denial_line(denial));
    const DenialText &reason = text_of(denial.reason);
    if (may_record())
        record_.denied_connection({denial.host, denial.port, reason.word, meaning_of(denial), reason.key, denial.where, denial.count});
    else
        unrecorded_ = sum_of(unrecorded_, denial.count);
}

// For the user, who hears of what the policy refused.
void GateWatch::count(const GateDenial &denial)
{
    if (!text_of(denial.reason).is_refusal) return;
    denied_.connections = sum_of(denied_.connections, denial.count);
    if (const std::string place = place_of_denial(denial); denied_.places.size() < counted_places || denied_.places.contains(place))
        denied_.places[place] = sum_of(denied_.places[place], denial.count);
}

// An agent that asks for a new name each time would otherwise fill the record, and keep this process from everything else.
bool GateWatch::may_record()
{
    if (!defence_is_on("bounded-denials")) return true;
    const auto now = Clock::now();
    if (const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - filled_).count(); seconds > 0) {
        const auto fresh = static_cast<std::size_t>(std::min<std::int64_t>(seconds, recorded_at_once)) * recorded_each_second;
        tokens_ = std::min(recorded_at_once, tokens_ + fresh);
        filled_ = now;
    }
    if (tokens_ == 0 || recorded_ == recorded_in_all) return false;
    --tokens_;
    ++recorded_;
    return true;
}

// best_effort: the file is for the agent alone.
void GateWatch::write_down(const std::string &line)
{
    if (!file_) return;
    const std::string room_for = end_of_list;
    const bool is_last = written_ + line.size() + room_for.size() > denials_file_limit;
    const std::string &text = is_last ? room_for : line;
    if (write(file_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || is_last) file_.reset();
    written_ += text.size();
}

// Kills nothing: the session's processes are gone, the gate ends by itself, and systemd ends one that does not with the runner's scope
// (BindsTo=). The user would wait for cgroup.kill, and that for what systemd does to control groups now: 9 ms on Debian 12.
std::string GateWatch::finish()
{
    shutdown(channel_.get(), SHUT_WR);
    const Deadline deadline = Clock::now() + last_words;
    while (is_there_ && Clock::now() < deadline && wait_for_input(said_, deadline))
        receive();
    if (unrecorded_ > 0)
        record_.denied_connection({"", 0, "not-recorded", "there were more than the record takes of one session", "", "", unrecorded_});
    return denied_notice(denied_);
}

} // namespace pi_agent
