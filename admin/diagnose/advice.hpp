// What a code of a message, a fault of doctor or a key of the policy means, and what to do: for pi-agentctl explain WORD.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// Words between backquotes are commands, keys and paths, as in Markdown.
struct Advice {
    const char *name;     // the code ("E77-root"), or doctor's name of the fault ("sudo-rule")
    const char *messages; // what the message begins with or contains, one a line; "…" replaces what differs
    const char *cause;
    const char *user;  // what a user does; empty: nothing, or whoever administers the host
    const char *admin; // what the administrator does; empty: nothing
};

// For every row of failure_kinds(), in its order.
const std::vector<Advice> &advice_on_failures();
// For every fault of doctor (docs/reference/doctor.md).
const std::vector<Advice> &advice_on_faults();

// The text for a code, a fault or a key; empty if there is no such word. Lines of at most 100 columns.
std::optional<std::string> explain_word(const std::string &word);

// docs/troubleshooting.md, which a unit test holds to this.
std::string troubleshooting_page();

} // namespace pi_agent
