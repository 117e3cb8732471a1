// Which system calls a policy may refuse besides those that every session is refused, and which of these it may let through.
#pragma once

#include "common/policy/policy_paths.hpp"

#include <iterator>

namespace pi_agent {

struct CallsPolicy;

// A call that a session makes unless the policy refuses it. Not in the table: what a program needs to begin, to end and to start others,
// and what hardening.tracing decides about.
struct DeniableCall {
    const char *name;
    const char *group; // of systemd-analyze(1) syscall-filter, as far as sessions make its calls; empty without one
};

inline constexpr DeniableCall deniable_calls[] = {
#include "common/deniable_calls.inc"
};

// Refused in every session unless the policy names them. A process does with them what it does to itself, and learns what it could learn
// otherwise: none of them leads to another process, around the filters, or out of the view.
enum class Refusal {
    always, // by the launcher's own filter, whatever else filters calls
    listed, // by what is on the list of calls: the unit's, or the launcher's
};
struct AllowableCall {
    const char *name;
    Refusal refusal;
};
inline constexpr AllowableCall allowable_calls[] = {
    {"mincore", Refusal::listed},           // which pages of its own memory are in use
    {"name_to_handle_at", Refusal::always}, // a file's number; nobody opens it by that, because open_by_handle_at(2) stays refused
    {"personality", Refusal::listed},       // addresses that are not random: ThreadSanitizer, gdb, setarch(8)
    {"pkey_alloc", Refusal::listed},        // keys of its own memory
    {"pkey_free", Refusal::listed},         {"pkey_mprotect", Refusal::listed},
};

// Kinds of sockets, in the order of the bits of a set of them.
inline constexpr std::string_view address_families[] = {"unix", "inet", "inet6", "netlink"};
inline constexpr unsigned all_address_families = (1U << std::size(address_families)) - 1;

// Rules for an element of hardening.deny_system_calls, allow_system_calls and address_families.
std::optional<TextProblem> problem_of_denied_call(const std::string &name);
std::optional<TextProblem> problem_of_allowed_call(const std::string &name);
std::optional<TextProblem> problem_of_address_family(const std::string &name);

// The names of the policy's lists, without its groups, sorted, each once.
std::vector<std::string> denied_calls_of(const CallsPolicy &calls);
std::vector<std::string> allowed_calls_of(const CallsPolicy &calls);
bool is_allowed_call(const CallsPolicy &calls, std::string_view name);
// As a set: the bit of each that the policy names.
unsigned address_families_of(const CallsPolicy &calls);

} // namespace pi_agent
