// sd-journal(3). Its own threshold bounds only values that are stored compressed, so each value is cut here before it is copied.
#include "runner/root/own/journal_reader.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <string_view>
#include <sys/resource.h>
#include <systemd/sd-journal.h>

namespace pi_agent {

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

} // namespace pi_agent
