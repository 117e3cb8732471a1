// The launch record over a real channel: a whole one arrives as it was sent, and no other is taken for one.
#include "runner/inside/agent_process.hpp"
#include "support/property.hpp"

#include <fcntl.h>
#include <fuzzer/FuzzedDataProvider.h>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

// Nothing is waited for: what is not there yet never comes.
std::optional<ReceivedLaunch> receive(std::pair<UniqueFd, UniqueFd> channel)
{
    channel.first.reset();
    return unless_refused([&] { return receive_launch(channel.second, in_seconds(5)); });
}

UniqueFd null_device()
{
    return UniqueFd::adopt(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

LaunchRecord make_record(FuzzedDataProvider &choices)
{
    LaunchRecord record;
    record.binary = choices.ConsumeRandomLengthString(16);
    for (auto count = choices.ConsumeIntegralInRange(0, 4); count > 0; --count)
        record.arguments.push_back(choices.ConsumeRandomLengthString(16));
    for (auto count = choices.ConsumeIntegralInRange(0, 4); count > 0; --count)
        record.environment.push_back(choices.ConsumeRandomLengthString(16));
    record.project = choices.ConsumeRandomLengthString(16);
    record.below = choices.ConsumeRandomLengthString(16);
    record.cwd_inode = choices.ConsumeIntegral<std::uint64_t>();
    record.umask = choices.ConsumeIntegralInRange<unsigned>(0, 0777);
    for (bool &one : record.on_terminal)
        one = choices.ConsumeBool();
    record.restrictions = choices.PickValueInArray({Restrictions::none, Restrictions::beside_unit, Restrictions::all});
    record.mount_points.push_back(choices.ConsumeRandomLengthString(16));
    record.most_open_files = choices.ConsumeIntegral<std::uint64_t>();
    record.open_files = choices.ConsumeIntegral<std::uint64_t>();
    record.tracing = choices.PickValueInArray({Tracing::automatic, Tracing::always, Tracing::never});
    record.hosts_processes = choices.ConsumeIntegral<std::uint64_t>();
    record.has_mode_changer = choices.ConsumeBool();
    record.keeps_project = choices.ConsumeBool();
    record.denied_calls.push_back(choices.ConsumeRandomLengthString(16));
    record.allowed_calls.push_back(choices.ConsumeRandomLengthString(16));
    record.address_families = choices.ConsumeIntegralInRange<unsigned>(0, all_address_families);
    return record;
}

void require_same(const LaunchRecord &one, const LaunchRecord &other)
{
    require(one.binary == other.binary && one.arguments == other.arguments && one.environment == other.environment &&
                one.project == other.project && one.below == other.below && one.cwd_inode == other.cwd_inode && one.umask == other.umask &&
                one.on_terminal == other.on_terminal && one.restrictions == other.restrictions && one.mount_points == other.mount_points &&
                one.open_files == other.open_files && one.most_open_files == other.most_open_files && one.tracing == other.tracing &&
                one.hosts_processes == other.hosts_processes && one.has_mode_changer == other.has_mode_changer &&
                one.keeps_project == other.keeps_project && one.denied_calls == other.denied_calls &&
                one.allowed_calls == other.allowed_calls && one.address_families == other.address_families,
            "a launch record came otherwise than it was sent");
}

void try_whole(FuzzedDataProvider &choices)
{
    auto channel = make_channel();
    const LaunchRecord record = make_record(choices);
    const UniqueFd terminal = has_any(record.on_terminal) ? null_device() : UniqueFd();
    std::array<UniqueFd, 3> stdio;
    for (std::size_t index = 0; index < stdio.size(); ++index)
        if (!record.on_terminal[index]) stdio[index] = null_device();
    send_stdio(channel.first, stdio, FdRef(-1), in_seconds(5));
    const UniqueFd changer = record.has_mode_changer ? null_device() : UniqueFd();
    send_launch(channel.first, record, terminal, changer, in_seconds(5));
    const auto launch = receive(std::move(channel));
    require(launch.has_value(), "a launch record was refused");
    require_same(launch->record, record);
    for (const auto &fd : launch->stdio)
        require(fd.is_open(), "a standard descriptor is not there");
}

// The beginning of what is sent is right; then come packets of any bytes, with descriptors or without.
void try_packets(FuzzedDataProvider &choices)
{
    auto channel = make_channel();
    const UniqueFd null = null_device();
    std::array<UniqueFd, 3> stdio;
    for (auto &fd : stdio)
        if (choices.ConsumeBool()) fd = null_device();
    if (choices.ConsumeBool()) send_stdio(channel.first, stdio, FdRef(-1), in_seconds(5));
    for (auto count = choices.ConsumeIntegralInRange(0, 3); count > 0; --count) {
        const std::string bytes = choices.ConsumeRandomLengthString(512) + "."; // no packet is empty
        const std::vector<int> fds(choices.ConsumeIntegralInRange<std::size_t>(0, 2), null.get());
        if (choices.ConsumeBool())
            send_record(channel.first, bytes, fds, in_seconds(5));
        else
            send_packet(channel.first, bytes, fds, in_seconds(5));
    }
    const auto launch = receive(std::move(channel));
    if (!launch) return;
    for (const auto &fd : launch->stdio)
        require(fd.is_open(), "a standard descriptor is not there");
    require(launch->terminal.is_open() == has_any(launch->record.on_terminal), "a terminal that nobody is on");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    FuzzedDataProvider choices(reinterpret_cast<const std::uint8_t *>(input.data()), input.size());
    if (choices.ConsumeBool())
        try_whole(choices);
    else
        try_packets(choices);
}
