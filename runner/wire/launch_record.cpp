// Encoding of the launch record and of pi-agent-exec's answers.
#include "runner/wire/launch_record.hpp"

namespace pi_agent {

namespace {

constexpr std::uint64_t launch_type = 16;
constexpr std::uint64_t stdio_type = 20;

// The descriptors that came, and copies of the terminal in the places between.
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

void send_stdio(FdRef channel, const std::array<UniqueFd, 3> &stdio, Deadline deadline)
{
    std::vector<int> open;
    for (const auto &fd : stdio)
        if (fd) open.push_back(fd.get());
    send_packet(channel, Encoder().number(stdio_type).bytes(), open, deadline);
}

void send_launch(FdRef channel, const LaunchRecord &record, FdRef terminal, FdRef mode_changer, Deadline deadline)
{
    Encoder encoder;
    FieldWriter{encoder}(launch_type, record);
    std::vector<int> descriptors;
    if (has_any(record.on_terminal)) descriptors.push_back(terminal.get());
    if (record.has_mode_changer) descriptors.push_back(mode_changer.get());
    send_record(channel, encoder.bytes(), descriptors, deadline);
}

ReceivedLaunch receive_launch(FdRef channel, Deadline deadline)
{
    std::optional<Packet> stdio = receive_packet(channel, deadline);
    if (!stdio || stdio->bytes != Encoder().number(stdio_type).bytes()) throw ProtocolError("no standard descriptors came");
    std::optional<Packet> packet = receive_record(channel, deadline);
    if (!packet) throw ProtocolError("no launch record came");
    Decoder decoder(packet->bytes);
    if (decoder.number() != launch_type) throw ProtocolError("no launch record came");
    ReceivedLaunch launch;
    FieldReader{decoder}(launch.record);
    launch.record.umask &= 0777U;
    decoder.end();
    const bool has_terminal = has_any(launch.record.on_terminal);
    const bool has_mode_changer = launch.record.has_mode_changer;
    if (packet->fds.size() != (has_terminal ? 1U : 0U) + (has_mode_changer ? 1U : 0U)) throw ProtocolError("no launch record came");
    if (has_terminal) launch.terminal = std::move(packet->fds.front());
    if (has_mode_changer) launch.mode_changer = std::move(packet->fds.back());
    launch.stdio = complete(std::move(stdio->fds), launch.record.on_terminal, launch.terminal);
    return launch;
}

ExecMessage decode_exec_message(std::string_view bytes)
{
    return decode_one_of<ExecMessage>(bytes, "pi-agent-exec sent an unknown message");
}

} // namespace pi_agent
