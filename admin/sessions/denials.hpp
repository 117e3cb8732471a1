// pi-agentctl denials: which connections of sessions the policy's network denied, and what would change that.
#pragma once

#include "runner/wire/own_messages.hpp"

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// One event of the record. Values are harmless, as there; the user's name is as the host has it.
struct DeniedConnection {
    std::uint64_t time_usec = 0;
    std::string session, user, project;
    std::string host; // empty for more of a session than the record takes one by one
    std::uint64_t port = 0;
    std::string code, reason;
    std::string key;   // of the policy, that would change it
    std::string where; // of the rule that almost fits
    std::uint64_t count = 1;
};

struct DenialQuery {
    std::optional<std::string> session; // a whole id, or its beginning
    std::optional<std::string> user;
    std::optional<std::uint64_t> since;
    bool follow = false; // goes on until the reader is gone
};

// In the order of their times.
std::vector<DeniedConnection> to_denials(const std::vector<LogEntry> &entries, const DenialQuery &query);

// A user who cannot read the journal sees their own. Throws Nothing if the record has no such event, unless it follows. As JSON, what it
// follows comes one object a line.
void run_denials(const DenialQuery &query, bool json, std::ostream &out, std::ostream &notes);

} // namespace pi_agent
