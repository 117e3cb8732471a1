// Takes what the session's gate says: within bounds of number, size and time.
#include "runner/root/confined/session_end.hpp"

#include "common/seams/seams.hpp"

#include <sys/socket.h>

namespace pi_agent {

namespace {

constexpr std::size_t recorded_at_once = 20;
constexpr std::size_t recorded_each_second = 10;
constexpr std::size_t recorded_in_all = 1000;
constexpr std::size_t counted_places = 200;
constexpr std::size_t heard_each_second = 2000; // of a gate: 240 at most (gate/gate.cpp), and what a late reader finds at once
constexpr auto last_words = std::chrono::milliseconds(200);
constexpr std::size_t silences_told = 3; // a gate that the agent has taken over can be silent as often as it likes
constexpr const char *end_of_list = "(more is not listed here)\n";

ConnectionDeniedEvent event_of(const GateDenial &denial)
{
    const DenialText &reason = text_of(denial.reason);
    return {denial.host, denial.port, reason.word, reason.meaning, reason.key, denial.where, denial.count};
}

std::uint64_t sum_of(std::uint64_t one, std::uint64_t other)
{
    return one + std::min(other, UINT64_MAX - one);
}

} // namespace

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
        end_it();
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

// The user is told that the agent reaches nothing any more. A gate that lives has its listeners, though nobody hears it: one that says
// farewell looks as if it had ended, and one that the agent has taken over does not end because its channel does.
void GateWatch::end_it()
{
    shutdown(channel_.get(), SHUT_RDWR);
    if (defence_is_on("gate-killed")) attempt_recorded(session_, kill_, "its gate cannot be ended: ");
}

// Each packet costs this process a turn of its loop, whatever is in it. Only a gate that the agent has taken over says so many.
bool GateWatch::says_too_much()
{
    const auto now = Clock::now();
    if (now - counted_since_ >= std::chrono::seconds(1)) {
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
    if (may_record())
        record_.denied_connection(event_of(denial));
    else
        unrecorded_ = sum_of(unrecorded_, denial.count);
}

// For the user, who hears of what the policy refused.
void GateWatch::count(const GateDenial &denial)
{
    if (!text_of(denial.reason).is_refusal) return;
    denied_.connections = sum_of(denied_.connections, denial.count);
    const std::string place = place_of_denial(denial);
    if (denied_.places.size() < counted_places || denied_.places.contains(place))
        denied_.places[place] = sum_of(denied_.places[place], denial.count);
}

// An agent that asks for a new name each time would otherwise fill the record, and keep this process from everything else.
bool GateWatch::may_record()
{
    if (!defence_is_on("bounded-denials")) return true;
    const auto now = Clock::now();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - filled_).count();
    if (seconds > 0) {
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
