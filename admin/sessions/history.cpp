// History and denied connections, out of the record.
#include "admin/sessions/sessions.hpp"

#include "admin/text/terminal.hpp"
#include "common/decide/explained.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <thread>

namespace pi_agent {

// --- Joins the records of each start.

namespace {

// What every event records alike. The wrapper's word may hold any byte.
void take_subject(PastStart &start, const LogEntry &entry)
{
    const auto value = [&](const char *name) { return entry.is_roots() ? entry.field(name) : escape_for_display(entry.field(name)); };
    start.id = value("PI_AGENT_SESSION");
    start.user = without_escapes(value("PI_AGENT_USER"));
    // A sender that is not root may give any name as its user's, so its number counts.
    if (const auto uid = entry.number("_UID"); uid && !entry.is_roots()) start.user = name_or_number(Uid(static_cast<uid_t>(*uid)));
    start.account = value("PI_AGENT_ACCOUNT");
    start.project = value("PI_AGENT_PROJECT");
    start.directory = value("PI_AGENT_DIRECTORY");
    start.repository = value("PI_AGENT_REPOSITORY");
    start.method = value("SANDBOX_SELECT");
    start.program = value("PI_AGENT_PROGRAM");
    start.reason = value("PI_AGENT_REASON");
    start.said_by_root = entry.is_roots();
}

void take_end(PastStart &start, const LogEntry &entry)
{
    take_subject(start, entry);
    start.ended_usec = entry.time_usec;
    start.duration_usec = entry.number("PI_AGENT_DURATION_USEC");
    start.exit_code = entry.number("PI_AGENT_EXIT_CODE");
    start.exit_signal = entry.number("PI_AGENT_EXIT_SIGNAL");
    start.memory_peak = entry.number("PI_AGENT_MEMORY_PEAK");
    start.cpu_usec = entry.number("PI_AGENT_CPU_USEC");
    if (!start.started_usec && start.duration_usec) start.started_usec = entry.time_usec - *start.duration_usec; // it began before `since`
}

// A try of the sandbox is one start, as its user, which ends before the try does: root says when that was. A user's own canary is not a
// try, so users cannot hide a start by what they call it.
struct Try {
    std::string user;
    std::uint64_t begin, end;
    bool is_found = false; // each is found once
};

void mark_probes(const std::vector<LogEntry> &entries, std::vector<PastStart> &starts)
{
    std::vector<Try> tries;
    for (const auto &entry : entries) {
        const auto duration = entry.number("PI_AGENT_DURATION_USEC");
        if (entry.field("PI_AGENT_EVENT") == "preflight" && entry.is_roots() && duration)
            tries.push_back({without_escapes(entry.field("PI_AGENT_USER")), entry.time_usec - *duration, entry.time_usec});
    }
    for (auto &start : starts) {
        if (start.program != "canary" && !(start.program.empty() && start.refused)) continue;
        const auto found = std::ranges::find_if(tries, [&](const Try &one) {
            return !one.is_found && one.user == start.user && start.first_usec() >= one.begin && start.first_usec() <= one.end;
        });
        if (found != tries.end()) start.is_probe = found->is_found = true;
    }
}

bool is_asked_for(const PastStart &start, const HistoryQuery &query)
{
    if (query.user && start.user != *query.user) return false;
    if (query.until && start.first_usec() > *query.until) return false;
    if (start.is_probe && !query.probes) return false;
    if (query.project && !is_within(place_of(start.directory, start.project), escape_for_display(*query.project))) return false;
    return !query.failed || start.has_failed();
}

const char *state_of(const PastStart &start)
{
    if (start.refused) return start.is_denied() ? "denied" : "failed";
    if (start.ended_usec) return "ended";
    return start.is_running ? "running" : "no end recorded";
}

std::string outcome_of(const PastStart &start)
{
    if (start.refused) return fmt::format("{} ({})", state_of(start), *start.refused);
    if (start.exit_code) return fmt::format("exit {}", *start.exit_code);
    if (start.exit_signal) return fmt::format("signal {}", *start.exit_signal);
    return state_of(start);
}

std::string to_line(const LogEntry &entry)
{
    const std::string identifier = entry.field("SYSLOG_IDENTIFIER");
    // The record's own values are harmless already, and escaping is not idempotent.
    const bool harmless = entry.is_roots() && !entry.field("PI_AGENT_EVENT").empty();
    const std::string message = entry.field("MESSAGE");
    return fmt::format("{} {}: {}\n", to_local_time(entry.time_usec),
                       escape_for_display(identifier.empty() ? entry.field("_COMM") : identifier),
                       harmless ? message : escape_for_display(message));
}

// A user who cannot read the journal has their own record. The runner is asked only where something in it has no end.
std::vector<PastStart> starts_for_caller(const HistoryQuery &query, std::ostream &notes)
{
    // Only root knows which sessions live; before the record, because what ends in between has its end there.
    if (can_read_record()) {
        std::vector<std::string> living;
        if (::geteuid() == 0)
            for (const auto &live : live_sessions(AsRoot::claim()))
                living.push_back(live.id);
        else
            notes << "pi-agentctl: only root can tell which sessions are running, and what is in " << record_file_path
                  << ", if there is one\n";
        const auto record = read_record(query.since);
        tell_if_cut(record, notes);
        return to_history(record.entries, query, [&](const std::string &id) { return std::ranges::find(living, id) != living.end(); });
    }
    std::vector<SessionView> living;
    const auto read = [&] {
        const auto entries = read_callers_record("history", query.user, query.since, RecordPart::starts, notes);
        return to_history(entries, query, [&](const std::string &id) {
            return std::ranges::any_of(living, [&](const SessionView &session) { return session.id == id; });
        });
    };
    auto starts = read();
    if (std::ranges::all_of(starts, [](const PastStart &start) { return start.ended_usec.has_value(); })) return starts;
    living = ask_own({OwnSubject::sessions}).sessions; // then the record again: what ends in between has its end there
    return read();
}

// --- Denied connections of the record: as a list, as they come, and as YAML for the policy.

std::string target_of(const DeniedConnection &denial)
{
    return denial.host.empty() ? "(more)" : host_and_port(denial.host, static_cast<std::uint16_t>(denial.port));
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
        told = static_cast<std::size_t>(std::ranges::count(denials, last, &DeniedConnection::time_usec));
        query.since = last;
    }
}

} // namespace

// Not in a namespace without a name: nlohmann-json finds it by its argument.
static void to_json(nlohmann::json &json, const PastStart &start)
{
    json = {{"state", state_of(start)},
            {"started", time_or_null(start.started_usec)},
            {"ended", time_or_null(start.ended_usec)},
            {"probe", start.is_probe},
            {"said_by", start.said_by_root ? "root" : "user"}};
    for (const auto &[key, member] : {std::pair{"id", &PastStart::id},
                                      {"user", &PastStart::user},
                                      {"account", &PastStart::account},
                                      {"project", &PastStart::project},
                                      {"directory", &PastStart::directory},
                                      {"repository", &PastStart::repository},
                                      {"method", &PastStart::method},
                                      {"program", &PastStart::program},
                                      {"denied_code", &PastStart::code},
                                      {"reason", &PastStart::reason}})
        json[key] = text_or_null(start.*member);
    for (const auto &[key, member] : {std::pair{"duration_usec", &PastStart::duration_usec},
                                      {"memory_peak_bytes", &PastStart::memory_peak},
                                      {"cpu_usec", &PastStart::cpu_usec},
                                      {"exit_code", &PastStart::exit_code},
                                      {"exit_signal", &PastStart::exit_signal},
                                      {"denied_status", &PastStart::refused}})
        json[key] = number_or_null(start.*member);
}

std::vector<LogEntry> read_callers_record(const std::string &command, const std::optional<std::string> &user,
                                          std::optional<std::uint64_t> since, RecordPart part, std::ostream &notes)
{
    bound_memory_of_reader();
    auto record = read_own_record(require_own(command, user, "reads what is recorded of other users"), since, part);
    if (record.is_cut) notes << "pi-agentctl: older entries about you may have made room for these; ask the administrator for them\n";
    return std::move(record.entries);
}

bool PastStart::has_failed() const
{
    if (refused) return true;
    if (!ended_usec) return !is_running;
    return exit_code != std::optional<std::uint64_t>(0);
}

std::vector<PastStart> to_history(const std::vector<LogEntry> &entries, const HistoryQuery &query,
                                  const std::function<bool(const std::string &id)> &is_live)
{
    std::vector<PastStart> starts;
    std::map<std::string, std::size_t> sessions; // where in `starts` each is
    for (const auto &entry : entries) {
        const std::string event = entry.field("PI_AGENT_EVENT");
        if (event == "preflight") continue; // below
        const std::string id = entry.field("PI_AGENT_SESSION");
        const auto known = event == "denied" ? sessions.end() : sessions.find(id);
        if (known == sessions.end()) {
            if (event != "denied") sessions[id] = starts.size();
            starts.emplace_back();
        }
        PastStart &start = known == sessions.end() ? starts.back() : starts[known->second];
        if (event == "ended") {
            // Of two ends (docs/reference/record.md, "Exactly once"), the second is from a process that did not hear of the first.
            if (!start.ended_usec) take_end(start, entry);
            continue;
        }
        take_subject(start, entry);
        if (event == "started") {
            start.started_usec = entry.time_usec;
        } else {
            start.ended_usec = entry.time_usec;
            start.refused = entry.number("PI_AGENT_STATUS").value_or(0);
            start.code = escape_for_display(entry.field("PI_AGENT_CODE"));
        }
    }
    for (auto &start : starts)
        start.is_running = !start.ended_usec && is_live(start.id);
    mark_probes(entries, starts);
    std::erase_if(starts, [&](const PastStart &start) { return !is_asked_for(start, query); });
    std::ranges::stable_sort(starts, [](const PastStart &one, const PastStart &other) { return one.first_usec() < other.first_usec(); });
    return starts;
}

void tell_if_cut(const RecordRead &record, std::ostream &notes)
{
    if (record.is_cut)
        notes
            << "pi-agentctl: the record holds more than one look keeps; the oldest entries are left out, or those of a user who wrote too "
               "many\n";
}

void run_history(const HistoryQuery &query, bool json, std::ostream &out, std::ostream &notes)
{
    const auto starts = starts_for_caller(query, notes);
    if (json) return print_json({{"starts", starts}}, out);
    if (starts.empty()) throw NothingToDo("the record contains no such session or refusal");
    const auto columns = columns_for(out);
    const auto rows = mapped(starts, [&](const PastStart &start) {
        const auto &place = place_of(start.directory, start.project);
        Row row = {to_local_time(start.first_usec()), escape_for_display(start.user), columns ? short_id(start.id) : start.id,
                   outcome_of(start), to_duration(start.duration_usec)};
        if (columns)
            row.push_back(start.reason.empty() ? short_path(place, start.user) : start.reason);
        else
            row.insert(row.end(), {to_duration(start.cpu_usec), to_size(start.memory_peak),
                                   place + (start.reason.empty() ? "" : (place.empty() ? "(" : " (") + start.reason + ")")});
        return row;
    });
    if (columns)
        out << to_table({"TIME", "USER", "SESSION", "OUTCOME", "DURATION", "DIRECTORY, OR WHY NOT"}, rows, *columns, Cut::end);
    else
        out << to_table({"TIME", "USER", "SESSION", "OUTCOME", "DURATION", "CPU", "MEMORY", "DIRECTORY (AND WHY NOT)"}, rows);
}

void run_logs(const std::string &id, bool follow, std::ostream &out, std::ostream &notes)
{
    const auto chosen = is_session_id(id) ? id : choose_session(recorded_sessions(), id, "pi-agentctl history");
    std::size_t told = 0;
    for (;; std::this_thread::sleep_for(follow_pause)) {
        // A start that was refused has no end, nor has a session whose host went down.
        // Looked at first, so that what is recorded before a session goes is still read.
        const bool is_gone = ::geteuid() == 0 && !session_exists(AsRoot::claim(), chosen);
        const auto [entries, is_cut] = read_session_log(chosen);
        if (entries.empty()) throw NothingToDo("nothing is logged of the session " + chosen);
        if (is_cut && told == 0)
            notes << "pi-agentctl: more is logged of this session than one look holds; the oldest lines are left out\n";
        for (; told < entries.size(); ++told)
            out << to_line(entries[told]);
        out.flush();
        const bool has_ended = std::ranges::any_of(entries, [](const LogEntry &entry) { return entry.field("PI_AGENT_EVENT") == "ended"; });
        if (!follow || has_ended || is_gone || !out) return;
    }
}

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
    std::string rules, others;
    for (const auto &[host, asked] : sorted) {
        const auto seen = fmt::format("{} times, {}; last {}", asked.count, fmt::join(asked.users, ", "), to_local_time(asked.last_usec));
        if (asked.is_rule)
            rules += fmt::format("    - \"{}\" # {}\n", host, seen);
        else
            others += fmt::format("# {}: {} ({})\n", host, fmt::join(asked.reasons, ", "), seen);
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
        const nlohmann::json list = mapped(denials, [&](const auto &denial) { return to_object(denial); });
        return print_json({{"denials", list}}, out);
    }
    if (denials.empty()) throw NothingToDo("the record contains no denied connection");
    const auto rows = mapped(denials, [&](const auto &denial) {
        return Row{to_local_time(denial.time_usec),
                   escape_for_display(denial.user),
                   short_id(denial.session),
                   std::to_string(denial.count),
                   target_of(denial),
                   remedy_of(denial),
                   denial.reason};
    });
    const Row header = {"TIME", "USER", "SESSION", "COUNT", "WHERE TO", "POLICY KEY", "WHY"};
    const auto columns = columns_for(out);
    out << (columns ? to_table(header, rows, *columns, Cut::end) : to_table(header, rows));
}

} // namespace pi_agent
