// Hears the launcher within the protocol, and knows when it passes nothing on.
#include "runner/root/confined/launcher.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"

#include <utility>

namespace pi_agent {

namespace {

constexpr int sending_seconds = 1;
constexpr int last_word_seconds = 1; // of a launcher that is gone
constexpr int answer_seconds = 1;    // the wrapper waits a little longer (wrapper/asked_end.cpp)

} // namespace

std::optional<ExecMessage> Launcher::receive()
{
    try {
        const std::optional<Packet> packet = receive_plain_packet(control_, Clock::now());
        is_open_ = packet.has_value();
        if (packet) return decode_exec_message(packet->bytes);
    } catch (const ProtocolError &) {
        is_open_ = false; // the agent may have taken its launcher over; only what is seen from outside counts
    }
    return std::nullopt;
}

void Launcher::hear_last_words(const std::function<void(const ExecMessage &)> &hear)
{
    const Deadline deadline = in_seconds(last_word_seconds);
    while (is_open_ && wait_for_input(control_, Clock::now()) && Clock::now() < deadline)
        if (const auto message = receive()) hear(*message);
}

void Launcher::send(const WrapperMessage &message)
{
    if (is_open_) send_packet(control_, encode(message), {}, in_seconds(sending_seconds));
}

void Launcher::send_best_effort(const WrapperMessage &message) noexcept
{
    try {
        send(message);
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort
    }
}

void Launcher::expect_answer(const WrapperMessage &message)
{
    const auto *signal = std::get_if<ForwardSignal>(&message);
    if (signal == nullptr || !asks_for_end(signal->number) || unanswered_) return;
    unanswered_ = signal->number;
    if (defence_is_on("signals-are-heard")) due_ = in_seconds(answer_seconds);
}

bool Launcher::take_answer() noexcept
{
    due_ = Deadline::max();
    return std::exchange(unanswered_, std::nullopt).has_value();
}

std::optional<int> Launcher::take_unanswered()
{
    if (Clock::now() < due_ || (is_open_ && wait_for_input(control_, Clock::now())))
        return std::nullopt; // this process may be the late one
    due_ = Deadline::max();
    return unanswered_;
}

} // namespace pi_agent
