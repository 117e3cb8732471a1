// Reads the record back, newest entries first and within bounds: every account of the host can write to the journal, as much as it likes.
#include "admin/sessions/sessions.hpp"

#include <filesystem>
#include <sys/resource.h>
#include <systemd/sd-journal.h>

namespace pi_agent {

namespace {

using FieldNames = std::string_view; // with spaces between them

constexpr std::size_t entry_value_bytes = 32UL * 1024; // of one value, as root records it (common/record/record_event.cpp)
constexpr std::size_t longest_name = 64;               // of a field (journald takes no longer one)
constexpr std::size_t looked_at = 100'000;             // entries, of which others may have written most
constexpr rlim_t own_memory = 1UL << 30U;              // bytes
constexpr std::size_t file_bytes = 256UL << 20U;       // of one file of root's
constexpr std::uint64_t hour = 3600'000'000;           // microseconds

void check_journal(int result, const char *action)
{
    if (result < 0) throw SystemFailure(-result, std::string("reading the journal: ") + action);
}

bool is_bounded()
{
    return defence_is_on("record-bounds");
}

// What may be kept of the entries that are read.
struct Room {
    std::size_t entries, bytes;

    // False, and nothing is taken, where the entry is too much.
    bool take(const LogEntry &entry)
    {
        std::size_t size = 2 * sizeof(std::uint64_t);
        for (const auto &[name, value] : entry.fields_by_name)
            size += name.size() + value.size() + 2 * sizeof(std::uint64_t);
        if (!is_bounded()) return true;
        if (entries == 0 || size > bytes) return false;
        --entries;
        bytes -= size;
        return true;
    }
};

// sd-journal(3). Its own threshold bounds only values that are stored compressed, so each value is cut here before it is copied.
class Journal {
public:
    Journal() : journal_(nullptr, sd_journal_close)
    {
        sd_journal *opened = nullptr;
        check_journal(sd_journal_open(&opened, SD_JOURNAL_LOCAL_ONLY), "opening it");
        journal_.reset(opened);
        check_journal(sd_journal_set_data_threshold(opened, is_bounded() ? longest_name + 1 + entry_value_bytes : 0), "bounding values");
    }

    // Fields of one name are alternatives; different names must all match.
    void match(const std::string &field, const std::string &value)
    {
        const std::string text = field + "=" + value;
        check_journal(sd_journal_add_match(journal_.get(), text.data(), text.size()), "choosing entries");
    }
    void begin_alternative() { check_journal(sd_journal_add_disjunction(journal_.get()), "choosing entries"); }

    // Hands over what matches, newest first, as long as `take` returns true: of each entry these fields alone, and of each value the first
    // `entry_value_bytes`. What is earlier than `since` is left out. False when there may be more.
    bool read_newest(std::optional<std::uint64_t> since, FieldNames fields, const std::function<bool(LogEntry)> &take)
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
            if (!take({time, read_fields(fields)})) return false;
        }
        return false;
    }

private:
    std::map<std::string, std::string> read_fields(FieldNames fields)
    {
        std::map<std::string, std::string> found;
        const void *data = nullptr;
        std::size_t size = 0;
        sd_journal_restart_data(journal_.get());
        for (;;) {
            const int more = sd_journal_enumerate_data(journal_.get(), &data, &size);
            check_journal(more, "reading an entry");
            if (more == 0) return found;
            const std::string_view text(static_cast<const char *>(data), size);
            const std::size_t equals = text.substr(0, longest_name + 1).find('=');
            if (equals == std::string_view::npos) continue;
            const auto name = text.substr(0, equals);
            if (is_bounded() && !has_word(fields, name)) continue;
            found.emplace(name, text.substr(equals + 1, is_bounded() ? entry_value_bytes : std::string_view::npos));
        }
    }

    std::unique_ptr<sd_journal, void (*)(sd_journal *)> journal_;
};

// What a history and a list of denials are made of (admin/sessions/).
constexpr FieldNames record_fields_read =
    "PI_AGENT_EVENT PI_AGENT_SESSION PI_AGENT_USER PI_AGENT_UID PI_AGENT_ACCOUNT PI_AGENT_PROJECT PI_AGENT_DIRECTORY PI_AGENT_REPOSITORY "
    "PI_AGENT_PROGRAM PI_AGENT_REASON PI_AGENT_DURATION_USEC PI_AGENT_EXIT_CODE PI_AGENT_EXIT_SIGNAL PI_AGENT_MEMORY_PEAK "
    "PI_AGENT_CPU_USEC PI_AGENT_STATUS PI_AGENT_CODE PI_AGENT_HOST PI_AGENT_PORT PI_AGENT_KEY PI_AGENT_WHERE PI_AGENT_COUNT "
    "SANDBOX_SELECT MESSAGE_ID _UID";
constexpr FieldNames log_fields = "MESSAGE SYSLOG_IDENTIFIER _COMM PI_AGENT_EVENT PI_AGENT_SESSION _UID";

// What one look keeps: of root's own words, of those of all users, and of those of one of them.
constexpr Room roots_room = {100'000, 64UL << 20U};
constexpr Room users_room = {100'000, 16UL << 20U};
constexpr Room one_users_room = {1'000, 1UL << 20U};

// Empty for half a line, left by a death in the middle of it.
std::optional<LogEntry> parse_line(std::string_view line, FieldNames fields)
{
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return std::nullopt;
    LogEntry entry{0, {{"_UID", "0"}}};
    for (const auto &[name, value] : json.items()) {
        if (!value.is_string()) continue;
        if (name == "__REALTIME_TIMESTAMP") entry.time_usec = to_number<std::uint64_t>(value.get<std::string>()).value_or(0);
        if (has_word(fields, name)) entry.fields_by_name[name] = value.get<std::string>();
    }
    return entry;
}

// Adds the wanted entries of root's files. True if one of the files was full, so that earlier ones may be gone.
bool add_files(std::vector<LogEntry> &entries, const std::string &directory, const std::string &stem, FieldNames fields,
               const std::function<bool(const LogEntry &)> &is_wanted)
{
    bool was_full = false;
    for (const auto &name : list_trusted_directory(directory, "", "directory of the record")) {
        const bool is_full = name.starts_with(stem + ".full-");
        if (!is_full && name != stem + ".jsonl") continue;
        was_full = was_full || is_full;
        const auto text = if_there([&] { return read_trusted_file(directory + "/" + name, file_bytes, "record"); });
        for (const auto line : split(text, '\n'))
            if (auto entry = parse_line(line, fields); entry && is_wanted(*entry)) entries.push_back(std::move(*entry));
    }
    return was_full;
}

std::vector<LogEntry> in_order(std::vector<LogEntry> entries)
{
    std::ranges::stable_sort(entries, [](const LogEntry &one, const LogEntry &other) { return one.time_usec < other.time_usec; });
    return entries;
}

// Only root can look at the file that replaces a journal; others hear of what the journal has.
void add_record_file(std::vector<LogEntry> &entries, std::optional<std::uint64_t> since, FieldNames fields,
                     const std::function<bool(const LogEntry &)> &is_wanted)
{
    if (::geteuid() == 0)
        add_files(entries, record_directory, record_stem, fields,
                  [&](const LogEntry &entry) { return (!since || entry.time_usec >= *since) && is_wanted(entry); });
}

void require_readable()
{
    bound_memory_of_reader();
    if (can_read_record()) return;
    throw Failure(FailureKind::root_only,
                  "only root and members of the group systemd-journal can read the record, which is in the journal; use sudo");
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
    const bool is_known = std::ranges::find(start_events, event) != start_events.end();
    return (counts || !defence_is_on("record-sender")) && is_known && entry.field("MESSAGE_ID") == message_id_of(event);
}

// The newest entries that fit.
class Newest {
public:
    explicit Newest(Room room) : room_(room) {}
    bool take(LogEntry entry)
    {
        if (!room_.take(entry)) return false;
        entries_.push_back(std::move(entry));
        return true;
    }
    void add_to(std::vector<LogEntry> &all) { all.insert(all.end(), entries_.rbegin(), entries_.rend()); }

private:
    Room room_;
    std::vector<LogEntry> entries_; // newest first
};

} // namespace

void bound_memory_of_reader()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_DATA, &limit) != 0) throw_errno("examining the limit of memory");
    if (!is_bounded() || limit.rlim_cur <= own_memory) return;
    limit.rlim_cur = own_memory;
    if (setrlimit(RLIMIT_DATA, &limit) != 0) throw_errno("limiting the memory of this process");
}

std::string LogEntry::field(const std::string &name) const
{
    const auto found = fields_by_name.find(name);
    return found == fields_by_name.end() ? "" : found->second;
}

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
    RecordRead record;
    Newest roots(roots_room);
    Journal journal;
    match_events(journal, part);
    if (defence_is_on("record-sender")) journal.match("_UID", "0");
    record.is_cut =
        !journal.read_newest(since, record_fields_read, [&](LogEntry entry) { return !is_wanted(entry) || roots.take(std::move(entry)); });
    roots.add_to(record.entries);
    if (part == RecordPart::starts) {
        Newest words(users_room);
        std::map<std::string, Room> rooms; // of each user as much as of any other, so that the words of one push out nobody else's
        Journal of_users;
        of_users.match("MESSAGE_ID", message_id_of("denied"));
        const bool is_whole = of_users.read_newest(since, record_fields_read, [&](LogEntry entry) {
            if (entry.is_roots() || !is_of_record(entry)) return true;
            if (rooms.emplace(entry.field("_UID"), one_users_room).first->second.take(entry)) return words.take(std::move(entry));
            record.is_cut = true;
            return true;
        });
        record.is_cut = record.is_cut || !is_whole;
        words.add_to(record.entries);
    }
    add_record_file(record.entries, since, record_fields_read, is_wanted);
    return {in_order(std::move(record.entries)), record.is_cut};
}

RecordRead read_own_record(const Account &user, std::optional<std::uint64_t> since, RecordPart part)
{
    const bool is_of_starts = part == RecordPart::starts;
    // Both: a number may have been somebody else's before, and so may a name.
    const auto is_own = [&, uid = std::to_string(user.uid.value()), name = escape_for_display(user.name)](const LogEntry &entry) {
        const bool is_wanted = is_of_starts ? is_of_record(entry) : is_of_connections(entry);
        return is_wanted && entry.field("PI_AGENT_UID") == uid && entry.field("PI_AGENT_USER") == name;
    };
    Newest words(one_users_room); // of `pi`, as this user, who can read their own part of the journal
    bool is_whole = true;
    if (is_of_starts) {
        Journal journal;
        journal.match("MESSAGE_ID", message_id_of("denied"));
        journal.match("_UID", std::to_string(user.uid.value()));
        is_whole =
            journal.read_newest(since, record_fields_read, [&](LogEntry entry) { return !is_own(entry) || words.take(std::move(entry)); });
    }
    std::vector<LogEntry> entries;
    words.add_to(entries);
    const bool was_full =
        add_files(entries, own_record_directory(user), is_of_starts ? record_stem : denials_stem, record_fields_read, is_own);
    const auto is_earlier = [&](const LogEntry &entry) { return since && entry.time_usec < *since; };
    const bool goes_back = std::erase_if(entries, is_earlier) > 0;
    return {in_order(std::move(entries)), !is_whole || (was_full && !goes_back)};
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
    Newest newest(roots_room); // root's and systemd's, and what the session's units wrote
    const bool is_whole = journal.read_newest({}, log_fields, [&](LogEntry entry) { return newest.take(std::move(entry)); });
    std::vector<LogEntry> entries;
    newest.add_to(entries);
    add_record_file(entries, {}, log_fields, [&](const LogEntry &entry) { return entry.field("PI_AGENT_SESSION") == id; });
    return {in_order(std::move(entries)), !is_whole};
}

// Root's word alone: ids that anybody could add would make the beginnings of the others ambiguous.
std::vector<std::string> recorded_sessions()
{
    require_readable();
    constexpr FieldNames fields = "PI_AGENT_SESSION";
    std::set<std::string> ids;
    Journal journal;
    match_events(journal, RecordPart::starts);
    if (defence_is_on("recorded-sessions")) journal.match("_UID", "0");
    journal.read_newest({}, fields, [&](const LogEntry &entry) {
        ids.insert(entry.field("PI_AGENT_SESSION"));
        return true;
    });
    std::vector<LogEntry> entries;
    add_record_file(entries, {}, fields, [](const LogEntry & /*entry*/) { return true; });
    for (const auto &entry : entries)
        ids.insert(entry.field("PI_AGENT_SESSION"));
    std::erase_if(ids, [](const std::string &id) { return !is_session_id(id); });
    return {ids.begin(), ids.end()};
}

} // namespace pi_agent
