// Keeps sessions from starting, and waits for the end of those that run: `pi-agentctl drain`. And the administrator's words for users.
#include "admin/sessions/sessions.hpp"

#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/session/drain.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <thread>

namespace pi_agent {

namespace {

constexpr std::size_t message_limit = 500; // bytes: it travels as the target of a symlink, and people read it on a terminal
constexpr int look_milliseconds = 200;

std::string count_of(std::size_t sessions)
{
    return sessions == 0 ? "no session runs" : fmt::format("{} {}", sessions, sessions == 1 ? "session runs" : "sessions run");
}

// Other administrators may end the drain meanwhile, and stop or wait for sessions as well.
void wait_for_last_session(const AsRoot &root)
{
    while (!live_sessions(root).empty()) {
        if (!find_drain(root))
            throw Failure(FailureKind::changed_meanwhile,
                          "somebody ended the drain of this host while this command waited, so sessions start "
                          "again; " +
                              count_of(live_sessions(root).size()));
        std::this_thread::sleep_for(std::chrono::milliseconds(look_milliseconds));
    }
}

} // namespace

void require_harmless_message(const std::string &message)
{
    if (message.empty() || message.size() > message_limit)
        throw Failure(FailureKind::command_line, fmt::format("--message takes a text of 1 to {} bytes", message_limit));
    if (escape_for_display(message) != message && defence_is_on("plain-message"))
        throw Failure(
            FailureKind::command_line,
            "--message takes one line of UTF-8, because terminals show it: without control characters, backslashes and marks that "
            "turn the direction of text");
}

void run_drain(const DrainOrder &order, std::ostream &out)
{
    const auto root = claim_root("drain", "keeps users from starting sessions, so only root can run it");
    if (order.off) {
        if (order.wait || order.message) throw Failure(ExitStatus::usage, "--off excludes --wait and --message");
        out << (end_drain(root) ? "sessions start again\n" : "nothing to do: this host is not drained\n");
        return;
    }
    if (order.message) require_harmless_message(*order.message);
    const auto before = find_drain(root);
    if (!before || order.message) begin_drain(root, order.message.value_or(""));
    const auto running = live_sessions(root).size();
    out << (before ? "this host is drained already" : "no session starts from now on") << ", until 'pi-agentctl drain --off' or a boot; "
        << count_of(running) << '\n'
        << std::flush;
    if (running == 0) return;
    if (!order.wait) {
        out << "'pi-agentctl drain --wait' waits for their end, and 'pi-agentctl stop --all' ends them\n";
        return;
    }
    wait_for_last_session(root);
    out << "no session runs any more\n";
}

std::string drain_note(const AsRoot &root)
{
    const auto drain = find_drain(root);
    if (!drain) return "";
    return "this host is drained since " + to_local_time(drain->since_usec) + ", so no session starts" +
           (drain->message.empty() ? "" : " (" + escape_for_display(drain->message) + ")");
}

nlohmann::json drain_json(const AsRoot &root)
{
    const auto drain = find_drain(root);
    if (!drain) return nullptr;
    return {{"since", time_or_null(drain->since_usec)}, {"message", text_or_null(escape_for_display(drain->message))}};
}

} // namespace pi_agent
