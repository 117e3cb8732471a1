// The metrics hold to the rules of promtool and of OpenMetrics, and name nothing that is private: admin/sessions/sessions.hpp
#include "admin/sessions/sessions.hpp"

#include "common/base/text.hpp"

#include <doctest/doctest.h>
#include <regex>
#include <set>

using namespace pi_agent;

namespace metrics_test {

namespace {

constexpr std::uint64_t second = 1'000'000;
constexpr std::uint64_t now = 1'800'000'000 * second;
const std::string private_path = "/home/alice/projects/secret-app";

SessionView session(const std::string &user, std::optional<std::uint64_t> started, std::uint64_t memory)
{
    SessionView view{"0123456789abcdef0123456789abcdef", 1000, user, {}, {}, {}, {}, {}, {}, {}, {}};
    if (!started) return view;
    view.account = "pi-agent-" + user;
    view.project = view.directory = private_path;
    view.method = "systemd";
    view.unit = "pi-agent-0123456789abcdef0123456789abcdef.service";
    view.started_usec = started;
    view.usage.memory = memory;
    view.usage.processes = 3;
    return view;
}

PastStart past(const std::string &user)
{
    PastStart start;
    start.id = "0123456789abcdef0123456789abcdef";
    start.user = user;
    start.method = "systemd";
    start.directory = start.project = private_path;
    start.reason = "a reason with " + private_path;
    return start;
}

PastStart ended(std::uint64_t begin, std::uint64_t end, std::optional<std::uint64_t> exit, std::optional<std::uint64_t> killed = {})
{
    PastStart start = past("alice");
    start.started_usec = begin;
    start.ended_usec = end;
    start.duration_usec = end - begin;
    start.exit_code = exit;
    start.exit_signal = killed;
    return start;
}

PastStart refused(const std::string &code, bool by_root)
{
    PastStart start = past("bob");
    start.ended_usec = now - 10 * second;
    start.refused = 77;
    start.code = code;
    start.said_by_root = by_root;
    return start;
}

MetricsInput full()
{
    MetricsInput input;
    input.now_usec = now;
    input.window_usec = 3600 * second;
    input.sessions = {session("alice", now - 90 * second, 1024), session("alice", now - 30 * second, 1024), session("bob", {}, 0)};
    input.starts = {ended(now - 100 * second, now - 40 * second, 0),
                    ended(now - 7200 * second, now - 50 * second, {}, 9),
                    ended(now - 9000 * second, now - 8000 * second, 1),
                    ended(now - 20 * second, now - 10 * second, {}),
                    refused("E77-root", true),
                    refused("E77-root", false),
                    refused("a\"b\n} 1\nevil_metric 1", false)};
    input.policy = {0, true, true, now - 86400 * second, now - 3600 * second};
    return input;
}

bool has_line(const std::string &text, const std::string &line)
{
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// What promtool check metrics and a parser of OpenMetrics refuse; empty if nothing.
std::string fault_of(const std::string &text)
{
    static const std::regex head(R"(# (HELP|TYPE) ([a-z_][a-z0-9_]*) (.+))");
    static const std::regex sample(R"(([a-z_][a-z0-9_]*)(\{([a-z_]+="([^"\\\n]|\\[\\"n])*",?)+\})? [0-9]+(\.[0-9]+)?)");
    if (!text.ends_with("\n# EOF\n")) return "no EOF";
    std::set<std::string> families;
    std::set<std::string> samples;
    std::string family;
    bool has_type = false;
    for (const auto line : split(std::string_view(text).substr(0, text.size() - 7), '\n')) {
        const std::string one(line);
        std::smatch match;
        if (std::regex_match(one, match, head)) {
            if (match[1] == "HELP" && !families.insert(match[2]).second) return "twice: " + one;
            if (match[1] == "HELP") family = match[2];
            if (match[1] == "TYPE" && (match[2] != family || match[3] != "gauge")) return "a type of another family: " + one;
            has_type = match[1] == "TYPE";
        } else if (std::regex_match(one, match, sample)) {
            if (match[1] != family || !has_type) return "a sample outside of its family: " + one;
            if (!samples.insert(one.substr(0, one.rfind(' '))).second) return "a sample twice: " + one;
        } else {
            return "not understood: " + one;
        }
    }
    for (const auto &name : families)
        for (const auto *end : {"_total", "_count", "_sum", "_bucket", "_gauge", "_milliseconds", "_usec", "_kb"})
            if (name.ends_with(end) || !name.starts_with("pi_agent_")) return "a name that promtool reports: " + name;
    return families.size() < 15 ? "too few families" : "";
}

} // namespace

TEST_CASE("the text holds to the rules of promtool and OpenMetrics, with much in it and with nothing")
{
    CHECK(fault_of(to_metrics(full())).empty());
    MetricsInput nothing;
    nothing.now_usec = now;
    CHECK(fault_of(to_metrics(nothing)).empty());
}

TEST_CASE("the rules find what they are for")
{
    const std::string text = to_metrics(full());
    CHECK(fault_of(text.substr(0, text.size() - 6)) == "no EOF");
    CHECK(fault_of("evil 1\n" + text).starts_with("a sample outside"));
    CHECK(fault_of("# HELP pi_agent_sessions x\n# TYPE pi_agent_sessions gauge\n" + text).starts_with("twice"));
    CHECK(fault_of("a{b=\"\"c\"} 1\n" + text).starts_with("not understood"));
}

TEST_CASE("sessions that live are summed by user")
{
    const std::string text = to_metrics(full());
    CHECK(has_line(text, "pi_agent_sessions{user=\"alice\",method=\"systemd\"} 2"));
    CHECK(has_line(text, "pi_agent_sessions_preparing{user=\"bob\"} 1"));
    CHECK(has_line(text, "pi_agent_sessions_oldest_age_seconds{user=\"alice\"} 90.000000"));
    CHECK(has_line(text, "pi_agent_sessions_memory_bytes{user=\"alice\"} 2048"));
    CHECK(has_line(text, "pi_agent_sessions_processes{user=\"alice\"} 6"));
}

TEST_CASE("starts and ends count in the window alone, each by its own time")
{
    const std::string text = to_metrics(full());
    CHECK(has_line(text, "pi_agent_recent_starts{user=\"alice\",method=\"systemd\"} 2"));
    CHECK(has_line(text, "pi_agent_recent_ends{user=\"alice\",exit=\"0\"} 1"));
    CHECK(has_line(text, "pi_agent_recent_ends{user=\"alice\",exit=\"signal 9\"} 1"));
    CHECK(has_line(text, "pi_agent_recent_ends{user=\"alice\",exit=\"unknown\"} 1"));
    CHECK(text.find("exit=\"1\"") == std::string::npos);
}

TEST_CASE("a user adds no labels by the codes of refusals that they report themselves")
{
    const std::string text = to_metrics(full());
    CHECK(has_line(text, "pi_agent_recent_refusals{user=\"bob\",code=\"E77-root\",said_by=\"root\"} 1"));
    CHECK(has_line(text, "pi_agent_recent_refusals{user=\"bob\",code=\"E77-root\",said_by=\"user\"} 1"));
    CHECK(has_line(text, "pi_agent_recent_refusals{user=\"bob\",code=\"other\",said_by=\"user\"} 1"));
    CHECK(text.find("evil") == std::string::npos);
}

TEST_CASE("odd names stay within their quotes")
{
    MetricsInput input = full();
    input.sessions = {session("CORP\\j\"doe\n", now, 1)};
    const std::string text = to_metrics(input);
    CHECK(fault_of(text).empty());
    CHECK(has_line(text, "pi_agent_sessions{user=\"CORP\\\\j\\\"doe\\n\",method=\"systemd\"} 1"));
    input.sessions = {session("CORP\\x5cdana", now, 1)}; // as sessions are listed; starts of the record have the name itself
    CHECK(has_line(to_metrics(input), "pi_agent_sessions{user=\"CORP\\\\dana\",method=\"systemd\"} 1"));
}

TEST_CASE("no path, session, reason or account is in them")
{
    const std::string text = to_metrics(full());
    for (const auto *part : {"secret-app", "/home", "0123456789abcdef", "reason", "pi-agent-alice"})
        CHECK_MESSAGE(text.find(part) == std::string::npos, part);
}

TEST_CASE("the policy's state is told, and times that are not known are left out")
{
    const std::string text = to_metrics(full());
    CHECK(has_line(text, "pi_agent_policy_valid 1"));
    CHECK(has_line(text, "pi_agent_policy_applied 1"));
    CHECK(has_line(text, "pi_agent_last_apply_timestamp_seconds 1799996400.000000"));
    MetricsInput broken = full();
    broken.policy = {};
    broken.policy.errors = 2;
    const std::string other = to_metrics(broken);
    CHECK(has_line(other, "pi_agent_policy_valid 0"));
    CHECK(has_line(other, "pi_agent_policy_errors 2"));
    CHECK(other.find("last_apply") == std::string::npos);
}

} // namespace metrics_test
