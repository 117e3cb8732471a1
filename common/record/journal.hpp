// Entries of the systemd journal, in its own protocol.
#pragma once

#include <string>
#include <vector>

namespace pi_agent {

struct JournalField {
    std::string name; // A-Z, 0-9 and '_'
    std::string value;
};

// Sends one entry. False when the journal does not take it: the host has no journal, or it is busy for longer than `patience_milliseconds`.
// Then it never gets it. Values may hold any byte.
bool send_to_journal(const std::vector<JournalField> &fields, int patience_milliseconds) noexcept;

// The datagram of an entry.
std::string encode_journal_entry(const std::vector<JournalField> &fields);

} // namespace pi_agent
