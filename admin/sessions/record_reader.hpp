// Reading the record back (docs/record.md): from the journal, and from the file that stands in for it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

struct LogEntry {
    std::uint64_t time_usec; // since 1970
    std::map<std::string, std::string> fields;

    // Empty where there is none.
    [[nodiscard]] std::string field(const std::string &name) const;
    [[nodiscard]] std::optional<std::uint64_t> number(const std::string &name) const;
    // root's own word: the journal says who sent an entry, and the file is root's. A user's is about that user and harmless at most.
    [[nodiscard]] bool is_roots() const;
};

// The events `denied`, `started`, `ended` and `preflight`, in the order of their times; of `denied` also what the wrapper said as its own
// user, every other entry that is not root's left out. `since` is in microseconds since 1970. Throws Failure(denied) when this process may
// not read the journal of the system.
std::vector<LogEntry> read_record(std::optional<std::uint64_t> since);

// Everything about one session: its record, what its units wrote, and what systemd wrote about them.
std::vector<LogEntry> read_session_log(const std::string &id);

// The ids of all sessions of which there is a record.
std::vector<std::string> recorded_sessions();

} // namespace pi_agent
