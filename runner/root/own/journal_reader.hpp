// Reads the systemd journal, newest entries first, within bounds: every account of the host can write there, as much as it likes.
#pragma once

#include "runner/wire/own_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct sd_journal;

namespace pi_agent {

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

} // namespace pi_agent
