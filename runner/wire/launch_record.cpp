// Encoding of the launch record and of pi-agent-exec's answers.
#include "runner/wire/launch_record.hpp"

namespace pi_agent {

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

ExecMessage decode_exec_message(std::string_view bytes)
{
    return decode_one_of<ExecMessage>(bytes, "pi-agent-exec sent an unknown message");
}

} // namespace pi_agent
