// sd-journal(3) for the journal, JSON lines for the file.
#include "admin/sessions/sessions.hpp"

#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/record/record_event.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/session/record.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <systemd/sd-journal.h>

namespace pi_agent {

namespace {

// Reads values that anybody may have written only up to this length.
constexpr std::size_t value_limit = std::size_t{64} << 10U; // bytes
constexpr std::size_t fields_limit = 128;

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
            if (equals != std::string_view::npos && entry.fields.size() < fields_limit)
                entry.fields.emplace(text.substr(0, equals), text.substr(equals + 1));
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
            if (value.is_string()) entry.fields[name] = value.get<std::string>();
        entry.time_usec = entry.number("__REALTIME_TIMESTAMP").value_or(0);
        if (!since || entry.time_usec >= *since) entries.push_back(std::move(entry));
    });
    return entries;
}

void require_readable()
{
    if (::geteuid() == 0) return;
    for (const auto *directory : {"/var/log/journal", "/run/log/journal"}) {
        std::error_code error;
        for (const auto &machine : std::filesystem::directory_iterator(directory, error))
            if (::access((machine.path() / "system.journal").c_str(), R_OK) == 0) return;
    }
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

bool is_of_record(const LogEntry &entry)
{
    const auto event = entry.field("PI_AGENT_EVENT");
    const auto uid = entry.field("_UID"); // anybody can send any other field; this one the journal adds itself
    const bool counts = entry.is_roots() || (event == "denied" && !uid.empty() && uid == entry.field("PI_AGENT_UID"));
    return (counts || !defence_is_on("record-sender")) &&
           (event == "denied" || event == "started" || event == "ended" || event == "preflight") &&
           entry.field("MESSAGE_ID") == message_id_of(event);
}

} // namespace

std::string LogEntry::field(const std::string &name) const
{
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second;
}

std::optional<std::uint64_t> LogEntry::number(const std::string &name) const
{
    return to_number<std::uint64_t>(field(name));
}

std::vector<LogEntry> read_record(std::optional<std::uint64_t> since)
{
    require_readable();
    Journal journal;
    for (const auto *event : {"denied", "started", "ended", "preflight"})
        journal.match("MESSAGE_ID", message_id_of(event));
    return with_file(journal.read(since, is_of_record), since, is_of_record);
}

std::vector<LogEntry> read_session_log(const std::string &id)
{
    require_readable();
    Journal journal;
    journal.match("PI_AGENT_SESSION", id);
    journal.match("_UID", "0");
    for (const auto &unit : {service_name(id), scope_name(id), cleanup_name(id)}) {
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
