// Encoding of the launch record and of pi-agent-exec's answers.
#include "runner/wire/launch_record.hpp"

#include <fcntl.h>

namespace pi_agent {

namespace {

constexpr std::uint64_t launch_type = 16;
constexpr std::uint64_t ready_type = 17;
constexpr std::uint64_t failed_type = 18;
constexpr std::uint64_t ended_type = 19;
constexpr std::uint64_t stdio_type = 20;
constexpr std::uint64_t stopped_type = 21;
constexpr std::uint64_t signal_limit = 64;
constexpr std::size_t failure_text_limit = 4096;

} // namespace

void send_stdio(FdRef channel, const std::array<UniqueFd, 3> &stdio, Deadline deadline)
{
    std::vector<int> open;
    for (const auto &fd : stdio)
        if (fd) open.push_back(fd.get());
    send_packet(channel, Encoder().number(stdio_type).bytes(), open, deadline);
}

void send_launch(FdRef channel, const LaunchRecord &record, FdRef terminal, Deadline deadline)
{
    Encoder encoder;
    encoder.number(launch_type)
        .text(record.binary)
        .texts(record.arguments)
        .texts(record.environment)
        .text(record.project)
        .text(record.below)
        .number(record.cwd_inode)
        .number(record.umask);
    encode(encoder, record.on_terminal);
    encoder.number(static_cast<std::uint64_t>(record.restrictions)).texts(record.mount_points);
    const bool has_terminal = has_any(record.on_terminal);
    send_record(channel, encoder.bytes(), has_terminal ? std::vector<int>{terminal.get()} : std::vector<int>{}, deadline);
}

namespace {

// Those that came, and copies of the terminal in the places between.
std::array<UniqueFd, 3> complete(std::vector<UniqueFd> came, const OnTerminal &on_terminal, FdRef terminal)
{
    std::array<UniqueFd, 3> stdio;
    auto next = came.begin();
    for (std::size_t index = 0; index < 3; ++index) {
        if (!on_terminal[index] && next == came.end()) throw ProtocolError("a standard descriptor is missing");
        stdio[index] = on_terminal[index] ? duplicate(terminal) : std::move(*next++);
        if (!stdio[index]) throw_errno("copying the session's terminal");
    }
    if (next != came.end()) throw ProtocolError("there is a standard descriptor too many");
    return stdio;
}

} // namespace

ReceivedLaunch receive_launch(FdRef channel, Deadline deadline)
{
    std::optional<Packet> stdio = receive_packet(channel, deadline);
    if (!stdio || stdio->bytes != Encoder().number(stdio_type).bytes()) throw ProtocolError("no standard descriptors came");
    std::optional<Packet> packet = receive_record(channel, deadline);
    if (!packet) throw ProtocolError("no launch record came");
    Decoder decoder(packet->bytes);
    if (decoder.number() != launch_type) throw ProtocolError("no launch record came");
    ReceivedLaunch launch;
    launch.record.binary = decoder.text();
    launch.record.arguments = decoder.texts();
    launch.record.environment = decoder.texts();
    launch.record.project = decoder.text();
    launch.record.below = decoder.text();
    launch.record.cwd_inode = decoder.number();
    launch.record.umask = static_cast<unsigned>(decoder.number() & 0777U);
    for (bool &on_terminal : launch.record.on_terminal)
        on_terminal = decoder.flag();
    const std::uint64_t restrictions = decoder.number();
    if (restrictions > static_cast<std::uint64_t>(Restrictions::all)) throw ProtocolError("the launch record has unknown restrictions");
    launch.record.restrictions = static_cast<Restrictions>(restrictions);
    launch.record.mount_points = decoder.texts();
    decoder.end();
    if (packet->fds.size() != (has_any(launch.record.on_terminal) ? 1U : 0U)) throw ProtocolError("no launch record came");
    if (!packet->fds.empty()) launch.terminal = std::move(packet->fds[0]);
    launch.stdio = complete(std::move(stdio->fds), launch.record.on_terminal, launch.terminal);
    return launch;
}

std::string encode(const ExecMessage &message)
{
    Encoder encoder;
    if (std::holds_alternative<ExecReady>(message))
        encoder.number(ready_type);
    else if (const auto *failed = std::get_if<ExecFailed>(&message))
        encoder.number(failed_type).text(std::string_view(failed->text).substr(0, failure_text_limit));
    else if (const auto *ended = std::get_if<ExecEnded>(&message))
        encoder.number(ended_type).number(ended->by_signal ? 1 : 0).number(static_cast<std::uint64_t>(ended->value));
    else
        encoder.number(stopped_type).number(static_cast<std::uint64_t>(std::get<ExecStopped>(message).number));
    return encoder.bytes();
}

ExecMessage decode_exec_message(std::string_view bytes)
{
    Decoder decoder(bytes);
    const std::uint64_t type = decoder.number();
    if (type == ready_type) {
        decoder.end();
        return ExecReady{};
    }
    if (type == failed_type) {
        ExecFailed failed{decoder.text()};
        decoder.end();
        if (failed.text.size() > failure_text_limit) throw ProtocolError("pi-agent-exec sent an overlong text");
        return failed;
    }
    if (type == stopped_type) {
        const std::uint64_t number = decoder.number();
        decoder.end();
        if (number > signal_limit) throw ProtocolError("pi-agent-exec sent an impossible signal");
        return ExecStopped{static_cast<int>(number)};
    }
    if (type != ended_type) throw ProtocolError("pi-agent-exec sent an unknown message");
    const bool by_signal = decoder.flag();
    const std::uint64_t value = decoder.number();
    decoder.end();
    if (value > 255) throw ProtocolError("pi-agent-exec sent an impossible status");
    return ExecEnded{by_signal, static_cast<int>(value)};
}

} // namespace pi_agent
