// Denied connections of the record: as a list, as they come, and as YAML for the policy.
#include "admin/sessions/sessions.hpp"

#include "admin/text/terminal.hpp"
#include "common/decide/explained.hpp"

#include <fmt/ranges.h>

#include <thread>

namespace pi_agent {

namespace {

std::string target_of(const DeniedConnection &denial)
{
    if (denial.host.empty()) return "(more)";
    return host_and_port(denial.host, static_cast<std::uint16_t>(denial.port));
}

// What the administrator would change, and where the nearest rule is.
std::string remedy_of(const DeniedConnection &denial)
{
    if (denial.key.empty()) return denial.where;
    return denial.where.empty() ? denial.key : fmt::format("{} ({})", denial.key, denial.where);
}

nlohmann::json to_object(const DeniedConnection &denial)
{
    return {{"time", to_utc_time(denial.time_usec)},
            {"session", text_or_null(denial.session)},
            {"user", text_or_null(denial.user)},
            {"project", text_or_null(denial.project)},
            {"host", text_or_null(denial.host)},
            {"port", number_or_null(denial.port == 0 ? std::nullopt : std::optional(denial.port))},
            {"code", text_or_null(denial.code)},
            {"reason", text_or_null(denial.reason)},
            {"key", text_or_null(denial.key)},
            {"where", text_or_null(denial.where)},
            {"count", denial.count}};
}

std::string to_line(const DeniedConnection &denial)
{
    return fmt::format("{} {} {} {}{}: {}{}\n", to_local_time(denial.time_usec), escape_for_display(denial.user), short_id(denial.session),
                       target_of(denial), denial.count > 1 ? fmt::format(" ({} times)", denial.count) : "", denial.reason,
                       remedy_of(denial).empty() ? "" : "; " + remedy_of(denial));
}

std::vector<LogEntry> read_part(const DenialQuery &query, std::optional<std::uint64_t> since, RecordPart part, std::ostream &notes)
{
    if (!can_read_record()) return read_callers_record("denials", query.user, since, part, notes);
    auto record = read_record(since, part);
    tell_if_cut(record, notes);
    return std::move(record.entries);
}

// Sessions in which apply and doctor tried the sandbox: what they reach for is denied on purpose. Their starts are a little older.
std::set<std::string> probing_sessions(const DenialQuery &query, std::ostream &notes)
{
    constexpr std::uint64_t ten_minutes = 600'000'000;
    HistoryQuery all;
    all.probes = true;
    const auto since = query.since ? std::optional(*query.since - std::min(*query.since, ten_minutes)) : std::nullopt;
    std::set<std::string> sessions;
    for (const auto &start :
         to_history(read_part(query, since, RecordPart::starts, notes), all, [](const std::string & /*id*/) { return false; }))
        if (start.is_probe) sessions.insert(start.id);
    return sessions;
}

std::vector<DeniedConnection> read_denials(const DenialQuery &query, std::ostream &notes)
{
    auto denials = to_denials(read_part(query, query.since, RecordPart::connections, notes), query);
    if (query.probes || denials.empty()) return denials;
    const auto probing = probing_sessions(query, notes);
    std::erase_if(denials, [&](const DeniedConnection &denial) { return probing.contains(denial.session); });
    return denials;
}

// --- As YAML for the policy.

struct Asked {
    std::uint64_t count = 0, last_usec = 0;
    std::set<std::string> users, reasons;
    bool is_rule = false; // to name it would allow it
};

std::string list_of(const std::set<std::string> &texts)
{
    return fmt::format("{}", fmt::join(texts, ", "));
}

// Shows each once: several can have the same time, and the next look begins at the last.
void follow(DenialQuery query, bool json, std::ostream &out, std::ostream &notes)
{
    if (!query.since) query.since = now_microseconds();
    std::size_t told = 0; // of those at the time where the look begins
    for (;; std::this_thread::sleep_for(follow_pause)) {
        const auto denials = read_denials(query, notes);
        for (std::size_t index = told; index < denials.size(); ++index)
            out << (json ? to_object(denials[index]).dump() + "\n" : to_line(denials[index]));
        out.flush();
        if (!out) throw Failure(ExitStatus::system_failure, "the reader of these lines is gone");
        if (denials.empty()) continue;
        const std::uint64_t last = denials.back().time_usec;
        told = 0;
        for (const auto &denial : denials)
            told += denial.time_usec == last ? 1 : 0;
        query.since = last;
    }
}

} // namespace

std::vector<DeniedConnection> to_denials(const std::vector<LogEntry> &entries, const DenialQuery &query)
{
    std::vector<DeniedConnection> denials;
    for (const auto &entry : entries) {
        DeniedConnection denial = {entry.time_usec,
                                   entry.field("PI_AGENT_SESSION"),
                                   without_escapes(entry.field("PI_AGENT_USER")),
                                   entry.field("PI_AGENT_PROJECT"),
                                   entry.field("PI_AGENT_HOST"),
                                   entry.number("PI_AGENT_PORT").value_or(0),
                                   entry.field("PI_AGENT_CODE"),
                                   entry.field("PI_AGENT_REASON"),
                                   entry.field("PI_AGENT_KEY"),
                                   entry.field("PI_AGENT_WHERE"),
                                   entry.number("PI_AGENT_COUNT").value_or(1)};
        if (query.session && !denial.session.starts_with(*query.session)) continue;
        if (query.user && denial.user != *query.user) continue;
        denials.push_back(std::move(denial));
    }
    return denials;
}

std::string to_yaml(const std::vector<DeniedConnection> &denials)
{
    std::map<std::string, Asked> hosts; // by the rule that would name them
    for (const auto &denial : denials) {
        if (denial.host.empty()) continue;
        const auto target = target_of(denial);
        const auto rule = parse_host_rule(target);
        const auto *parsed = std::get_if<HostRule>(&rule);
        auto &asked = hosts[parsed != nullptr ? to_string(*parsed) : escape_for_display(target)];
        asked.count += denial.count;
        asked.last_usec = std::max(asked.last_usec, denial.time_usec);
        asked.users.insert(escape_for_display(denial.user));
        asked.reasons.insert(denial.reason);
        const bool is_one = parsed != nullptr && parsed->host.find_first_of("/*") == std::string::npos; // nobody connects to a range
        asked.is_rule = asked.is_rule || (is_one && has_word("no-rule other-port no-name plain-http", denial.code));
    }
    std::vector<std::pair<std::string, Asked>> sorted(hosts.begin(), hosts.end());
    std::ranges::stable_sort(sorted, [](const auto &one, const auto &other) { return one.second.count > other.second.count; });
    std::string rules;
    std::string others;
    for (const auto &[host, asked] : sorted) {
        const auto seen = fmt::format("{} times, {}; last {}", asked.count, list_of(asked.users), to_local_time(asked.last_usec));
        if (asked.is_rule)
            rules += fmt::format("    - \"{}\" # {}\n", host, seen);
        else
            others += fmt::format("# {}: {} ({})\n", host, list_of(asked.reasons), seen);
    }
    if (!rules.empty())
        rules =
            "# An agent chooses what it asks for: paste what you know, or type: sudo pi-agentctl allow HOST\nnetwork:\n  hosts:\n" + rules;
    return rules + (others.empty() ? "" : "# A name in hosts does not allow these:\n" + others);
}

void run_denials(const DenialQuery &query, bool json, bool summary, std::ostream &out, std::ostream &notes)
{
    if (query.follow) follow(query, json, out, notes);
    const auto denials = read_denials(query, notes);
    if (summary && !denials.empty()) {
        out << to_yaml(denials);
        return;
    }
    if (json) {
        nlohmann::json list = nlohmann::json::array();
        for (const auto &denial : denials)
            list.push_back(to_object(denial));
        return print_json({{"denials", list}}, out);
    }
    if (denials.empty()) throw NothingToDo("the record contains no denied connection");
    std::vector<Row> rows;
    for (const auto &denial : denials)
        rows.push_back({to_local_time(denial.time_usec), escape_for_display(denial.user), short_id(denial.session),
                        std::to_string(denial.count), target_of(denial), remedy_of(denial), denial.reason});
    const Row header = {"TIME", "USER", "SESSION", "COUNT", "WHERE TO", "POLICY KEY", "WHY"};
    const auto columns = columns_for(out);
    out << (columns ? to_table(header, rows, *columns, Cut::end) : to_table(header, rows));
}

} // namespace pi_agent
