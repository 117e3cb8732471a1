// sd-journal(3), each value cut before it is copied; then judges what the journal and the file have.
#include "runner/root/own/record_reader.hpp"

#include "runner/root/session/record.hpp"

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <systemd/sd-journal.h>

namespace pi_agent {

// sd-journal(3). Its own threshold bounds only values that are stored compressed, so each value is cut here before it is copied.

namespace {

constexpr std::size_t longest_name = 64;     // of a field (journald takes no longer one)
constexpr std::size_t looked_at = 100'000;   // entries, of which others may have written most
constexpr rlim_t own_memory = 1UL << 30U;    // bytes
constexpr std::uint64_t hour = 3600'000'000; // microseconds

void check_journal(int result, const char *action)
{
    if (result < 0) throw SystemFailure(-result, std::string("reading the journal: ") + action);
}

bool is_bounded()
{
    return defence_is_on("record-bounds");
}

} // namespace

bool Room::take(const LogEntry &entry)
{
    std::size_t size = 2 * sizeof(std::uint64_t);
    for (const auto &[name, value] : entry.fields_by_name)
        size += name.size() + value.size() + 2 * sizeof(std::uint64_t);
    if (!is_bounded()) return true;
    if (entries_ == 0 || size > bytes_) return false;
    --entries_;
    bytes_ -= size;
    return true;
}

Journal::Journal() : journal_(nullptr, sd_journal_close)
{
    sd_journal *opened = nullptr;
    check_journal(sd_journal_open(&opened, SD_JOURNAL_LOCAL_ONLY), "opening it");
    journal_.reset(opened);
    check_journal(sd_journal_set_data_threshold(opened, is_bounded() ? longest_name + 1 + entry_value_bytes : 0), "bounding values");
}

void Journal::match(const std::string &field, const std::string &value)
{
    const std::string text = field + "=" + value;
    check_journal(sd_journal_add_match(journal_.get(), text.data(), text.size()), "choosing entries");
}

void Journal::begin_alternative()
{
    check_journal(sd_journal_add_disjunction(journal_.get()), "choosing entries");
}

bool Journal::read_newest(std::optional<std::uint64_t> since, FieldNames fields, const std::function<bool(LogEntry)> &take)
{
    check_journal(sd_journal_seek_tail(journal_.get()), "going to its end");
    for (std::size_t count = 0; count < looked_at; ++count) {
        const int more = sd_journal_previous(journal_.get());
        check_journal(more, "going back");
        if (more == 0) return true;
        std::uint64_t time = 0;
        check_journal(sd_journal_get_realtime_usec(journal_.get(), &time), "reading an entry's time");
        // Where a clock was set back, earlier entries have later times: it goes an hour further.
        if (since && time + hour < *since) return true;
        if (since && time < *since) continue;
        LogEntry entry = read_entry(fields);
        entry.time_usec = time;
        if (!take(std::move(entry))) return false;
    }
    return false;
}

LogEntry Journal::read_entry(FieldNames fields)
{
    LogEntry entry;
    const void *data = nullptr;
    std::size_t size = 0;
    sd_journal_restart_data(journal_.get());
    for (;;) {
        const int more = sd_journal_enumerate_data(journal_.get(), &data, &size);
        check_journal(more, "reading an entry");
        if (more == 0) return entry;
        const std::string_view text(static_cast<const char *>(data), size);
        const std::size_t equals = text.substr(0, longest_name + 1).find('=');
        if (equals == std::string_view::npos) continue;
        const auto name = text.substr(0, equals);
        if (is_bounded() && std::find(fields.begin(), fields.end(), name) == fields.end()) continue;
        entry.fields_by_name.emplace(name, text.substr(equals + 1, is_bounded() ? entry_value_bytes : std::string_view::npos));
    }
}

void bound_memory_of_reader()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_DATA, &limit) != 0) throw_errno("examining the limit of memory");
    if (!is_bounded() || limit.rlim_cur <= own_memory) return;
    limit.rlim_cur = own_memory;
    if (setrlimit(RLIMIT_DATA, &limit) != 0) throw_errno("limiting the memory of this process");
}

// Judges what the journal has, and the JSON lines of the file.

namespace {

// What a history and a list of denials are made of (admin/sessions/).
constexpr std::array told_fields = {"PI_AGENT_EVENT",
                                    "PI_AGENT_SESSION",
                                    "PI_AGENT_USER",
                                    "PI_AGENT_ACCOUNT",
                                    "PI_AGENT_PROJECT",
                                    "PI_AGENT_DIRECTORY",
                                    "PI_AGENT_REPOSITORY",
                                    "SANDBOX_SELECT",
                                    "PI_AGENT_PROGRAM",
                                    "PI_AGENT_REASON",
                                    "PI_AGENT_DURATION_USEC",
                                    "PI_AGENT_EXIT_CODE",
                                    "PI_AGENT_EXIT_SIGNAL",
                                    "PI_AGENT_MEMORY_PEAK",
                                    "PI_AGENT_CPU_USEC",
                                    "PI_AGENT_STATUS",
                                    "PI_AGENT_CODE",
                                    "PI_AGENT_HOST",
                                    "PI_AGENT_PORT",
                                    "PI_AGENT_KEY",
                                    "PI_AGENT_WHERE",
                                    "PI_AGENT_COUNT",
                                    "_UID"};
// By which an entry is judged besides; a user is not told these.
constexpr std::array judged_fields = {"MESSAGE_ID", "PI_AGENT_UID"};
constexpr std::array log_fields = {"MESSAGE", "SYSLOG_IDENTIFIER", "_COMM", "PI_AGENT_EVENT", "PI_AGENT_SESSION", "_UID"};

constexpr auto record_fields_read = [] {
    std::array<const char *, told_fields.size() + judged_fields.size()> all{};
    std::copy(judged_fields.begin(), judged_fields.end(), std::copy(told_fields.begin(), told_fields.end(), all.begin()));
    return all;
}();

// What one look keeps: of root's own words, of those of all users, and of those of one of them.
constexpr std::size_t kept_entries = 100'000;
constexpr std::size_t kept_bytes = std::size_t{64} << 20U;
constexpr std::size_t users_bytes = std::size_t{16} << 20U;
constexpr std::size_t one_users_entries = 1'000;
constexpr std::size_t one_users_bytes = std::size_t{1} << 20U;

// Only root can look at the file; others hear of what the journal has.
std::vector<LogEntry> read_file(std::optional<std::uint64_t> since, FieldNames fields)
{
    std::vector<LogEntry> entries;
    if (::geteuid() != 0) return entries;
    read_record_file([&](const std::string &line) {
        const auto json = nlohmann::json::parse(line, nullptr, false);
        if (!json.is_object()) return; // half a line, left by a death in the middle of it
        LogEntry entry{0, {{"_UID", "0"}}};
        for (const auto &[name, value] : json.items())
            if (value.is_string() && std::find(fields.begin(), fields.end(), name) != fields.end())
                entry.fields_by_name[name] = value.get<std::string>();
        const auto time = json.find("__REALTIME_TIMESTAMP");
        if (time != json.end() && time->is_string()) entry.time_usec = to_number<std::uint64_t>(time->get<std::string>()).value_or(0);
        if (!since || entry.time_usec >= *since) entries.push_back(std::move(entry));
    });
    return entries;
}

void require_readable()
{
    bound_memory_of_reader();
    if (can_read_record()) return;
    throw Failure(FailureKind::root_only,
                  "only root and members of the group systemd-journal can read the record, which is in the journal; use sudo");
}

// Adds the wanted entries of the file, and sorts by time.
std::vector<LogEntry> with_file(std::vector<LogEntry> entries, std::optional<std::uint64_t> since, FieldNames fields,
                                const std::function<bool(const LogEntry &)> &is_wanted)
{
    auto more = read_file(since, fields);
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

LogEntry told_of(LogEntry entry)
{
    for (const auto *name : judged_fields)
        entry.fields_by_name.erase(name);
    return entry;
}

// The newest entries that fit.
class Newest {
public:
    Newest(std::size_t entries, std::size_t bytes) : room_(entries, bytes) {}
    bool take(LogEntry entry)
    {
        if (!room_.take(entry)) return false;
        entries_.push_back(std::move(entry));
        return true;
    }
    std::vector<LogEntry> oldest_first()
    {
        std::reverse(entries_.begin(), entries_.end());
        return std::move(entries_);
    }

private:
    Room room_;
    std::vector<LogEntry> entries_; // newest first
};

// Of each user as much as of any other, so that the words of one push out nobody else's.
class UsersWords {
public:
    bool take(LogEntry entry)
    {
        Room &own = rooms_.try_emplace(entry.field("_UID"), one_users_entries, one_users_bytes).first->second;
        if (own.take(entry)) return all_.take(std::move(entry));
        is_cut_ = true;
        return true;
    }
    [[nodiscard]] bool is_cut() const { return is_cut_; }
    std::vector<LogEntry> oldest_first() { return all_.oldest_first(); }

private:
    std::map<std::string, Room> rooms_;
    Newest all_{kept_entries, users_bytes};
    bool is_cut_ = false;
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

// Root's words and users' have rooms of their own: whatever users write, root's stay.
RecordRead read_record(std::optional<std::uint64_t> since, RecordPart part)
{
    require_readable();
    const auto is_wanted = part == RecordPart::starts ? is_of_record : is_of_connections;
    Newest roots(kept_entries, kept_bytes);
    Journal journal;
    match_events(journal, part);
    if (defence_is_on("record-sender")) journal.match("_UID", "0");
    bool is_whole =
        journal.read_newest(since, record_fields_read, [&](LogEntry entry) { return !is_wanted(entry) || roots.take(std::move(entry)); });
    auto entries = roots.oldest_first();
    if (part == RecordPart::starts) {
        UsersWords words;
        Journal of_users;
        of_users.match("MESSAGE_ID", message_id_of("denied"));
        is_whole = of_users.read_newest(
                       since, record_fields_read,
                       [&](LogEntry entry) { return entry.is_roots() || !is_of_record(entry) || words.take(std::move(entry)); }) &&
                   !words.is_cut() && is_whole;
        auto more = words.oldest_first();
        std::move(more.begin(), more.end(), std::back_inserter(entries));
    }
    return {with_file(std::move(entries), since, record_fields_read, is_wanted), !is_whole};
}

RecordRead read_own_record(const AsRoot & /*root*/, const Account &user, std::optional<std::uint64_t> since, RecordPart part)
{
    const std::string uid = std::to_string(user.uid.value());
    const std::string name = escape_for_display(user.name);
    const bool own_alone = defence_is_on("own-record");
    const auto is_wanted = part == RecordPart::starts ? is_of_record : is_of_connections;
    // Both: a number may have been somebody else's before, and so may a name.
    const auto is_own = [&](const LogEntry &entry) { return entry.field("PI_AGENT_UID") == uid && entry.field("PI_AGENT_USER") == name; };
    const auto is_told = [&](const LogEntry &entry) { return is_wanted(entry) && (is_own(entry) || !own_alone); };
    Journal journal;
    match_events(journal, part);
    if (own_alone) { // of others' entries this process reads nothing, not even to leave them out
        journal.match("PI_AGENT_UID", uid);
        journal.match("_UID", "0");
        journal.match("_UID", uid);
    }
    Newest of_journal(entries_limit, entries_bytes);
    const bool is_all = journal.read_newest(since, record_fields_read,
                                            [&](LogEntry entry) { return !is_told(entry) || of_journal.take(told_of(std::move(entry))); });
    const auto entries = with_file(of_journal.oldest_first(), since, record_fields_read, is_told);
    Newest newest(entries_limit, entries_bytes);
    const auto left_out =
        std::find_if(entries.rbegin(), entries.rend(), [&](const LogEntry &entry) { return !newest.take(told_of(entry)); });
    return {newest.oldest_first(), !is_all || left_out != entries.rend()};
}

RecordRead read_session_log(const std::string &id)
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
    Newest newest(kept_entries, kept_bytes); // root's and systemd's, and what the session's units wrote
    const bool is_whole = journal.read_newest({}, log_fields, [&](LogEntry entry) { return newest.take(std::move(entry)); });
    return {with_file(newest.oldest_first(), {}, log_fields, [&](const LogEntry &entry) { return entry.field("PI_AGENT_SESSION") == id; }),
            !is_whole};
}

// Root's word alone: ids that anybody could add would make the beginnings of the others ambiguous.
std::vector<std::string> recorded_sessions()
{
    require_readable();
    constexpr std::array fields = {"PI_AGENT_SESSION"};
    std::set<std::string> ids;
    Journal journal;
    match_events(journal, RecordPart::starts);
    if (defence_is_on("recorded-sessions")) journal.match("_UID", "0");
    journal.read_newest({}, fields, [&](const LogEntry &entry) {
        ids.insert(entry.field("PI_AGENT_SESSION"));
        return true;
    });
    for (const auto &entry : read_file({}, fields))
        ids.insert(entry.field("PI_AGENT_SESSION"));
    std::erase_if(ids, [](const std::string &id) { return !is_session_id(id); });
    return {ids.begin(), ids.end()};
}

} // namespace pi_agent
