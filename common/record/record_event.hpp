// The events that pi-agent records: their ids and fields, in one place. docs/reference/record.md describes them to those who read them.
#pragma once

#include "common/base/request.hpp"

#include "common/host/account.hpp"

namespace pi_agent {

// Whom an event is about. Unknown values are empty and get no field. Names and paths may hold any byte.
struct RecordSubject {
    std::string session, user;
    std::optional<Uid> uid;
    std::string account; // of the agent
    std::string project;
    std::string method; // sandbox.method
    std::string unit;
    std::string program;         // "agent", "shell" or "canary"
    std::string directory = {};  // the working directory
    std::string repository = {}; // that holds it
};

struct DeniedEvent { // a start came to no session: it was denied, or it failed (status). Connections: ConnectionDeniedEvent
    ExitStatus status;
    std::string reason;
    FailureKind kind = FailureKind::other;
};
struct StartedEvent {              // right before the agent starts
    bool commits_unsigned = false; // though the user's git or the repository signs them
    std::string added_hosts = {};  // by its user, as the policy lets them (--pi-agent-allow), with spaces between them
};
struct EndedEvent { // exactly one for each started
    std::optional<AgentEnded> how;
    std::string reason; // where it did not end by itself
    std::optional<std::uint64_t> duration_usec;
    std::optional<std::uint64_t> memory_peak; // bytes
    std::optional<std::uint64_t> cpu_usec;
};
struct PreflightEvent {  // a whole try of the sandbox, without an agent, as the subject's user and through processes of that user's
    std::string problem; // why it failed; empty when it passed
    std::uint64_t duration_usec = 0;
};
struct ConnectionDeniedEvent { // inside a session that runs
    std::string host;          // as it was asked for; empty for the rest of those that are not recorded one by one
    std::uint16_t port = 0;
    std::string code;        // a word for programs
    std::string reason;      // the same for people
    std::string key;         // of the policy, that would change it; empty where none would
    std::string where;       // of the rule that almost fits, FILE:LINE
    std::uint64_t count = 1; // since the last event of the same
};
struct ProblemEvent { // a part of pi-agent failed
    std::string text;
};
using RecordEvent = std::variant<DeniedEvent, StartedEvent, EndedEvent, PreflightEvent, ConnectionDeniedEvent, ProblemEvent>;

// --- Entries of the systemd journal, in its own protocol.

struct JournalField {
    std::string name; // A-Z, 0-9 and '_'
    std::string value;
};

// Sends one entry. False when the journal does not take it: the host has no journal, or it is busy for longer than `patience_milliseconds`.
// Then it never gets it. Values may hold any byte.
bool send_to_journal(const std::vector<JournalField> &fields, int patience_milliseconds) noexcept;

// The datagram of an entry.
std::string encode_journal_entry(const std::vector<JournalField> &fields);

// The entry of an event, every value made harmless and bounded. `identifier` names the program that says so.
std::vector<JournalField> record_fields(const RecordSubject &subject, const RecordEvent &event, const std::string &identifier);

// The MESSAGE_ID of "denied", "started", "ended", "preflight", "connection-denied" or "problem". Throws Failure(internal) for any other.
const char *message_id_of(const std::string &event);

} // namespace pi_agent
