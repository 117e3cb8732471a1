// How processes answer each other: failures, patience, events, names of sessions.
#include "runner/wire/answer.hpp"

namespace pi_agent {

namespace {

// The parent may be busy with another child for as long as a config sync takes. When the parent is gone, so is this child.
constexpr int parent_patience_seconds = launch_patience_seconds;

} // namespace

void send_answer(FdRef channel, std::string_view bytes, const std::vector<int> &fds)
{
    send_packet(channel, std::string(1, answer_tag).append(bytes), fds, in_seconds(parent_patience_seconds));
}

void send_long_answer(FdRef channel, std::string_view bytes)
{
    constexpr std::size_t piece = packet_limit - 1; // the tag takes one
    send_answer(channel, Encoder().number(bytes.size()).bytes());
    for (std::size_t sent = 0; sent < bytes.size(); sent += piece)
        send_answer(channel, bytes.substr(sent, piece));
}

void send_progress(FdRef channel, std::string_view doing)
{
    send_packet(channel, std::string(1, progress_tag).append(doing), {}, in_seconds(parent_patience_seconds));
}

void send_failure(FdRef channel, const Failure &failure) noexcept
{
    try {
        Encoder encoder;
        encoder.number(static_cast<std::uint64_t>(failure.status()));
        encoder.number(static_cast<std::uint64_t>(failure.kind())).text(std::string_view(failure.what()).substr(0, packet_limit / 2));
        send_packet(channel, failure_tag + encoder.bytes(), {}, in_seconds(parent_patience_seconds));
    } catch (...) { // NOLINT(bugprone-empty-catch): see the header
    }
}

bool is_session_id(const std::string &text) noexcept
{
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string scope_name(const std::string &id)
{
    return "pi-agent-run-" + id + ".scope";
}

std::optional<std::string> session_of_scope(const std::string &unit)
{
    const std::size_t name_start = unit.rfind('-') + 1; // npos + 1 is 0
    std::string id = unit.substr(name_start, unit.find('.', name_start) - name_start);
    return is_session_id(id) && unit == scope_name(id) ? std::optional(std::move(id)) : std::nullopt;
}

std::string cleanup_name(const std::string &id)
{
    return "pi-agent-cleanup-" + id + ".service";
}

std::string gate_name(const std::string &id)
{
    return "pi-agent-gate-" + id + ".service";
}

std::string service_name(const std::string &id)
{
    return "pi-agent-" + id + ".service";
}

} // namespace pi_agent
