// Reads the record back, newest entries first and within bounds: every account of the host can write to the journal.
#pragma once

#include "common/host/identity.hpp"
#include "runner/wire/own_messages.hpp"

#include <functional>
#include <memory>
#include <span>

struct sd_journal;

namespace pi_agent {

// Reads the systemd journal, newest entries first, within bounds: every account of the host can write there, as much as it likes.

using FieldNames = std::span<const char *const>;

// What may be kept of the entries that are read.
class Room {
public:
    Room(std::size_t entries, std::size_t bytes) : entries_(entries), bytes_(bytes) {}
    // False, and nothing is taken, where the entry is too much.
    bool take(const LogEntry &entry);

private:
    std::size_t entries_;
    std::size_t bytes_;
};

class Journal {
public:
    Journal();

    // Fields of one name are alternatives; different names must all match.
    void match(const std::string &field, const std::string &value);
    void begin_alternative();

    // Hands over what matches, newest first, as long as `take` returns true: of each entry these fields alone, and of each value the first
    // `entry_value_bytes`. What is earlier than `since` is left out. False when there may be more.
    bool read_newest(std::optional<std::uint64_t> since, FieldNames fields, const std::function<bool(LogEntry)> &take);

private:
    LogEntry read_entry(FieldNames fields);

    std::unique_ptr<sd_journal, void (*)(sd_journal *)> journal_;
};

// The memory that this process may have for itself. A bound behind the bounds: what they let pass fits several times. Mappings of the
// journal's files do not count.
void bound_memory_of_reader();

// Reads the record back (docs/reference/record.md): from the journal, and from the file that replaces it.

// Whether this process may read the journal of the system: root, and members of some groups. The other functions throw Failure(denied)
// for everybody else, and bound the memory of this process.
bool can_read_record();

enum class RecordPart {
    starts,      // refused ones, sessions and their ends
    connections, // that were denied in sessions
};

// In the order of their times.
struct RecordRead {
    std::vector<LogEntry> entries;
    bool is_cut = false; // some are left out: of all the oldest, or the oldest of a user who wrote too many
};

// Of starts: the events `denied`, `started`, `ended` and `preflight`. Of `denied` it also has what the wrapper said as its own user, of
// each user a bounded part. It leaves out every other entry that root did not write. `since` is in microseconds since 1970.
RecordRead read_record(std::optional<std::uint64_t> since, RecordPart part = RecordPart::starts);

// Of these, what is about one user, by number and name: as many of the newest as fit into one answer, with the fields of a history and no
// others. The caller bounds its memory (journal_reader.hpp).
RecordRead read_own_record(const AsRoot &root, const Account &user, std::optional<std::uint64_t> since,
                           RecordPart part = RecordPart::starts);

// Everything about one session: its record, what its units wrote, and what systemd wrote about them.
RecordRead read_session_log(const std::string &id);

// The ids of all sessions of which root has recorded a start or a refusal.
std::vector<std::string> recorded_sessions();

} // namespace pi_agent
