// Shows denied connections from the record.
#include "admin/sessions/sessions.hpp"

#include "admin/text/terminal.hpp"

#include <fmt/format.h>
#include <thread>

namespace pi_agent {

namespace {

constexpr std::chrono::milliseconds pause(500);

DeniedConnection to_denial(const LogEntry &entry)
{
    return {entry.time_usec,
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
}

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

std::vector<DeniedConnection> read_denials(const DenialQuery &query, std::ostream &notes)
{
    if (can_read_record()) {
        const auto record = read_record(query.since, RecordPart::connections);
        tell_if_cut(record, notes);
        return to_denials(record.entries, query);
    }
    return to_denials(read_callers_record("denials", query.user, query.since, RecordPart::connections, notes), query);
}

void show(const std::vector<DeniedConnection> &denials, std::ostream &out)
{
    std::vector<Row> rows;
    for (const auto &denial : denials)
        rows.push_back({to_local_time(denial.time_usec), escape_for_display(denial.user), short_id(denial.session),
                        std::to_string(denial.count), target_of(denial), remedy_of(denial), denial.reason});
    const Row header = {"TIME", "USER", "SESSION", "COUNT", "WHERE TO", "CHANGED BY", "WHY"};
    const auto columns = columns_for(out);
    out << (columns ? to_table(header, rows, *columns, Cut::end) : to_table(header, rows));
}

[[noreturn]] void refuse_to_follow_nothing()
{
    throw Failure(ExitStatus::system_failure, "the reader of these lines is gone");
}

// Shows each once: several can have the same time, and the next look begins at the last.
void follow(DenialQuery query, bool json, std::ostream &out, std::ostream &notes)
{
    if (!query.since) query.since = now_microseconds();
    std::size_t told = 0; // of those at the time where the look begins
    for (;; std::this_thread::sleep_for(pause)) {
        const auto denials = read_denials(query, notes);
        for (std::size_t index = told; index < denials.size(); ++index)
            out << (json ? to_object(denials[index]).dump() + "\n" : to_line(denials[index]));
        out.flush();
        if (!out) refuse_to_follow_nothing();
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
        DeniedConnection denial = to_denial(entry);
        if (query.session && !denial.session.starts_with(*query.session)) continue;
        if (query.user && denial.user != *query.user) continue;
        denials.push_back(std::move(denial));
    }
    return denials;
}

void run_denials(const DenialQuery &query, bool json, std::ostream &out, std::ostream &notes)
{
    if (query.follow) follow(query, json, out, notes);
    const auto denials = read_denials(query, notes);
    if (json) {
        nlohmann::json list = nlohmann::json::array();
        for (const auto &denial : denials)
            list.push_back(to_object(denial));
        return print_json({{"denials", list}}, out);
    }
    if (denials.empty()) throw Nothing("the record contains no denied connection");
    show(denials, out);
}

} // namespace pi_agent
