// Reads the record back (docs/reference/record.md): from the journal, and from the file that replaces it.
#pragma once

#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/wire/own_messages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

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
