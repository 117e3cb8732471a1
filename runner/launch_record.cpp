// Encoding of the launch record and of pi-agent-exec's answers.
#include "runner/launch_record.hpp"

namespace pi_agent {

namespace {

constexpr std::uint64_t launch_type = 16;
constexpr std::uint64_t ready_type = 17;
constexpr std::uint64_t failed_type = 18;
constexpr std::uint64_t ended_type = 19;
constexpr std::uint64_t stdio_type = 20;
constexpr std::size_t list_limit = 70'000;
constexpr std::size_t text_limit = 4096;

} // namespace

void send_stdio(FdRef channel, const std::array<UniqueFd, 3> &stdio, Deadline deadline)
{
    send_packet(channel, Encoder().number(stdio_type).bytes(), {stdio[0].get(), stdio[1].get(), stdio[2].get()}, deadline);
}

void send_launch(FdRef channel, const LaunchRecord &record, Deadline deadline)
{
    const std::string bytes = Encoder()
                                  .number(launch_type)
                                  .text(record.binary)
                                  .texts(record.arguments)
                                  .texts(record.environment)
                                  .text(record.project)
                                  .text(record.below)
                                  .number(record.cwd_inode)
                                  .number(record.umask)
                                  .bytes();
    send_record(channel, bytes, {}, deadline);
}

ReceivedLaunch receive_launch(FdRef channel, Deadline deadline)
{
    std::optional<Packet> stdio = receive_packet(channel, deadline);
    if (!stdio || stdio->fds.size() != 3 || stdio->bytes != Encoder().number(stdio_type).bytes())
        throw ProtocolError("no standard descriptors came");
    const std::optional<Packet> packet = receive_record(channel, deadline);
    if (!packet || !packet->fds.empty()) throw ProtocolError("no launch record came");
    Decoder decoder(packet->bytes);
    if (decoder.number() != launch_type) throw ProtocolError("no launch record came");
    ReceivedLaunch launch;
    launch.record.binary = decoder.text();
    launch.record.arguments = decoder.texts(list_limit);
    launch.record.environment = decoder.texts(list_limit);
    launch.record.project = decoder.text();
    launch.record.below = decoder.text();
    launch.record.cwd_inode = decoder.number();
    launch.record.umask = static_cast<unsigned>(decoder.number() & 0777U);
    decoder.end();
    for (std::size_t index = 0; index < 3; ++index)
        launch.stdio[index] = std::move(stdio->fds[index]);
    return launch;
}

std::string encode(const ExecMessage &message)
{
    Encoder encoder;
    if (std::holds_alternative<ExecReady>(message))
        encoder.number(ready_type);
    else if (const auto *failed = std::get_if<ExecFailed>(&message))
        encoder.number(failed_type).text(std::string_view(failed->text).substr(0, text_limit));
    else if (const auto *ended = std::get_if<ExecEnded>(&message))
        encoder.number(ended_type).number(ended->by_signal ? 1 : 0).number(static_cast<std::uint64_t>(ended->value));
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
        if (failed.text.size() > text_limit) throw ProtocolError("pi-agent-exec sent an overlong text");
        return failed;
    }
    if (type != ended_type) throw ProtocolError("pi-agent-exec sent an unknown message");
    const bool by_signal = decoder.number() == 1;
    const std::uint64_t value = decoder.number();
    decoder.end();
    if (value > 255) throw ProtocolError("pi-agent-exec sent an impossible status");
    return ExecEnded{by_signal, static_cast<int>(value)};
}

} // namespace pi_agent
