// sd-journal(3) for the journal, JSON lines for the file.
#include "runner/root/own/record_reader.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/record/record_event.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/session/record.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <systemd/sd-journal.h>
#include <unistd.h>

namespace pi_agent {

namespace {

// Reads values that anybody may have written only up to this length.
constexpr std::size_t value_limit = std::size_t{64} << 10U; // bytes
constexpr std::size_t fields_limit = 128;
// Of one user, who can write as many entries as the journal takes.
constexpr std::size_t looked_at_limit = 100'000;

void check(int result, const char *action)
{
    if (result < 0) throw SystemFailure(-result, std::string("reading the journal: ") + action);
}

class Journal {
public:
    Journal()
    {
        sd_journal *opened = nullptr;
        check(sd_journal_open(&opened, SD_JOURNAL_LOCAL_ONLY), "opening it");
        journal_.reset(opened);
        check(sd_journal_set_data_threshold(opened, value_limit), "bounding values");
    }

    void match(const std::string &field, const std::string &value)
    {
        const std::string text = field + "=" + value;
        check(sd_journal_add_match(journal_.get(), text.data(), text.size()), "choosing entries");
    }
    void begin_alternative() { check(sd_journal_add_disjunction(journal_.get()), "choosing entries"); }

    // The wanted entries. Anybody can write to the journal, so it keeps nothing from the others.
    std::vector<LogEntry> read(std::optional<std::uint64_t> since, bool (*is_wanted)(const LogEntry &))
    {
        std::vector<LogEntry> entries;
        check(since ? sd_journal_seek_realtime_usec(journal_.get(), *since) : sd_journal_seek_head(journal_.get()),
              "going to its beginning");
        for (;;) {
            const int more = sd_journal_next(journal_.get());
            check(more, "going on");
            if (more == 0) return entries;
            LogEntry entry = read_entry();
            // After a clock was set back, later entries may have earlier times.
            if ((!since || entry.time_usec >= *since) && is_wanted(entry)) entries.push_back(std::move(entry));
        }
    }

    // The newest of the wanted entries, newest first, as long as `take` takes them. False when there may be more.
    bool read_newest(const std::function<bool(const LogEntry &)> &is_wanted, const std::function<bool(LogEntry)> &take)
    {
        check(sd_journal_seek_tail(journal_.get()), "going to its end");
        for (std::size_t count = 0; count < looked_at_limit; ++count) {
            const int more = sd_journal_previous(journal_.get());
            check(more, "going back");
            if (more == 0) return true;
            LogEntry entry = read_entry();
            if (is_wanted(entry) && !take(std::move(entry))) return false;
        }
        return false;
    }

    std::set<std::string> values_of(const char *field, bool (*is_wanted)(const std::string &))
    {
        std::set<std::string> values;
        check(sd_journal_query_unique(journal_.get(), field), "listing values");
        const void *data = nullptr;
        std::size_t size = 0;
        while (sd_journal_enumerate_unique(journal_.get(), &data, &size) > 0) {
            const std::string_view text(static_cast<const char *>(data), size);
            std::string value(text.substr(text.find('=') + 1));
            if (is_wanted(value)) values.insert(std::move(value));
        }
        return values;
    }

private:
    LogEntry read_entry()
    {
        LogEntry entry{};
        check(sd_journal_get_realtime_usec(journal_.get(), &entry.time_usec), "reading an entry's time");
        const void *data = nullptr;
        std::size_t size = 0;
        sd_journal_restart_data(journal_.get());
        for (;;) {
            const int more = sd_journal_enumerate_data(journal_.get(), &data, &size);
            check(more, "reading an entry");
            if (more == 0) return entry;
            const std::string_view text(static_cast<const char *>(data), size);
            const std::size_t equals = text.find('=');
            if (equals != std::string_view::npos && entry.fields_by_name.size() < fields_limit)
                entry.fields_by_name.emplace(text.substr(0, equals), text.substr(equals + 1));
        }
    }

    std::unique_ptr<sd_journal, void (*)(sd_journal *)> journal_{nullptr, sd_journal_close};
};

// Only root can look at the file; others hear of what the journal has.
std::vector<LogEntry> read_file(std::optional<std::uint64_t> since)
{
    std::vector<LogEntry> entries;
    if (::geteuid() != 0) return entries;
    read_record_file([&](const std::string &line) {
        const auto json = nlohmann::json::parse(line, nullptr, false);
        if (!json.is_object()) return; // half a line, left by a death in the middle of it
        LogEntry entry{0, {{"_UID", "0"}}};
        for (const auto &[name, value] : json.items())
            if (value.is_string()) entry.fields_by_name[name] = value.get<std::string>();
        entry.time_usec = entry.number("__REALTIME_TIMESTAMP").value_or(0);
        if (!since || entry.time_usec >= *since) entries.push_back(std::move(entry));
    });
    return entries;
}

void require_readable()
{
    if (can_read_record()) return;
    throw Failure(FailureKind::root_only,
                  "only root and members of the group systemd-journal can read the record, which is in the journal; use sudo");
}

// Adds the wanted entries of the file, and sorts by time.
std::vector<LogEntry> with_file(std::vector<LogEntry> entries, std::optional<std::uint64_t> since,
                                const std::function<bool(const LogEntry &)> &is_wanted)
{
    auto more = read_file(since);
    std::copy_if(std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()), std::back_inserter(entries), is_wanted);
    std::stable_sort(entries.begin(), entries.end(),
                     [](const LogEntry &one, const LogEntry &other) { return one.time_usec < other.time_usec; });
    return entries;
}

// The events of starts, and those of connections: each command shows the one or the other.
constexpr std::array start_events = {"denied", "started", "ended", "preflight"};
constexpr const char *connection_event = "connection-denied";

void match_events(Journal &journal, RecordPart part)
{
    if (part == RecordPart::connections) return journal.match("MESSAGE_ID", message_id_of(connection_event));
    for (const auto *event : start_events)
        journal.match("MESSAGE_ID", message_id_of(event));
}

// Only root's processes hear of them.
bool is_of_connections(const LogEntry &entry)
{
    const auto event = entry.field("PI_AGENT_EVENT");
    return (entry.is_roots() || !defence_is_on("record-sender")) && event == connection_event &&
           entry.field("MESSAGE_ID") == message_id_of(event);
}

bool is_of_record(const LogEntry &entry)
{
    const auto event = entry.field("PI_AGENT_EVENT");
    const auto uid = entry.field("_UID"); // anybody can send any other field; this one the journal adds itself
    const bool counts = entry.is_roots() || (event == "denied" && !uid.empty() && uid == entry.field("PI_AGENT_UID"));
    const bool is_known = std::find(start_events.begin(), start_events.end(), event) != start_events.end();
    return (counts || !defence_is_on("record-sender")) && is_known && entry.field("MESSAGE_ID") == message_id_of(event);
}

// What a history and a list of denials are made of (admin/sessions/); a user is told nothing else.
// clang-format off
constexpr std::array told_fields = {
    "PI_AGENT_EVENT",       "PI_AGENT_SESSION",     "PI_AGENT_USER",     "PI_AGENT_ACCOUNT", "PI_AGENT_PROJECT",       "PI_AGENT_DIRECTORY",
    "PI_AGENT_REPOSITORY",  "SANDBOX_SELECT",       "PI_AGENT_PROGRAM",  "PI_AGENT_REASON",  "PI_AGENT_DURATION_USEC", "PI_AGENT_EXIT_CODE",
    "PI_AGENT_EXIT_SIGNAL", "PI_AGENT_MEMORY_PEAK", "PI_AGENT_CPU_USEC", "PI_AGENT_STATUS",  "PI_AGENT_CODE",          "PI_AGENT_HOST",
    "PI_AGENT_PORT",        "PI_AGENT_KEY",      "PI_AGENT_WHERE",   "PI_AGENT_COUNT",         "_UID"};
// clang-format on

LogEntry told_of(const LogEntry &entry)
{
    LogEntry told{entry.time_usec, {}};
    for (const auto *name : told_fields)
        if (const auto value = entry.field(name); !value.empty()) told.fields_by_name[name] = value.substr(0, entry_value_bytes);
    return told;
}

// The newest entries that fit into one answer.
class Newest {
public:
    bool take(LogEntry entry)
    {
        if (entries_.size() == entries_limit || bytes_ > entries_bytes) return false;
        for (const auto &[name, value] : entry.fields_by_name)
            bytes_ += name.size() + value.size() + 2 * sizeof(std::uint64_t);
        bytes_ += 2 * sizeof(std::uint64_t);
        entries_.push_back(std::move(entry));
        return true;
    }
    std::vector<LogEntry> oldest_first()
    {
        std::reverse(entries_.begin(), entries_.end());
        return std::move(entries_);
    }

private:
    std::vector<LogEntry> entries_; // newest first
    std::size_t bytes_ = 0;
};

} // namespace

bool can_read_record()
{
    if (::geteuid() == 0) return true;
    for (const auto *directory : {"/var/log/journal", "/run/log/journal"}) {
        std::error_code error;
        for (const auto &machine : std::filesystem::directory_iterator(directory, error))
            if (::access((machine.path() / "system.journal").c_str(), R_OK) == 0) return true;
    }
    return false;
}

std::vector<LogEntry> read_record(std::optional<std::uint64_t> since, RecordPart part)
{
    require_readable();
    Journal journal;
    match_events(journal, part);
    const auto is_wanted = part == RecordPart::starts ? is_of_record : is_of_connections;
    return with_file(journal.read(since, is_wanted), since, is_wanted);
}

OwnRecord read_own_record(const AsRoot & /*root*/, const Account &user, std::optional<std::uint64_t> since, RecordPart part)
{
    const std::string uid = std::to_string(user.uid.value());
    const std::string name = escape_for_display(user.name);
    const bool own_alone = defence_is_on("own-record");
    const auto is_wanted = part == RecordPart::starts ? is_of_record : is_of_connections;
    // Both: a number may have been somebody else's before, and so may a name.
    const auto is_own = [&](const LogEntry &entry) { return entry.field("PI_AGENT_UID") == uid && entry.field("PI_AGENT_USER") == name; };
    const auto is_told = [&](const LogEntry &entry) {
        return is_wanted(entry) && (is_own(entry) || !own_alone) && (!since || entry.time_usec >= *since);
    };
    Journal journal;
    match_events(journal, part);
    if (own_alone) { // of others' entries this process reads nothing, not even to leave them out
        journal.match("PI_AGENT_UID", uid);
        journal.match("_UID", "0");
        journal.match("_UID", uid);
    }
    Newest of_journal;
    const bool is_all = journal.read_newest(is_told, [&](const LogEntry &entry) { return of_journal.take(told_of(entry)); });
    const auto entries = with_file(of_journal.oldest_first(), since, is_told);
    Newest newest;
    const auto left_out =
        std::find_if(entries.rbegin(), entries.rend(), [&](const LogEntry &entry) { return !newest.take(told_of(entry)); });
    return {newest.oldest_first(), !is_all || left_out != entries.rend()};
}

std::vector<LogEntry> read_session_log(const std::string &id)
{
    require_readable();
    Journal journal;
    journal.match("PI_AGENT_SESSION", id);
    journal.match("_UID", "0");
    for (const auto &unit : {service_name(id), scope_name(id), cleanup_name(id), gate_name(id)}) {
        journal.begin_alternative();
        journal.match("_SYSTEMD_UNIT", unit);
        journal.begin_alternative();
        journal.match("UNIT", unit);
        journal.match("_PID", "1");
    }
    return with_file(journal.read({}, [](const LogEntry &) { return true; }), {}, // root's and systemd's, by what is matched
                     [&](const LogEntry &entry) { return entry.field("PI_AGENT_SESSION") == id; });
}

std::vector<std::string> recorded_sessions()
{
    require_readable();
    auto ids = Journal().values_of("PI_AGENT_SESSION", [](const std::string &id) { return is_session_id(id); });
    for (const auto &entry : read_file({}))
        ids.insert(entry.field("PI_AGENT_SESSION"));
    std::erase_if(ids, [](const std::string &id) { return !is_session_id(id); });
    return {ids.begin(), ids.end()};
}

} // namespace pi_agent
