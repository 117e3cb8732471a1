// The kinds of failure that users and administrators meet: each has an exit status (sysexits(3)) and a code that stays the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

enum class ExitStatus : int {
    usage = 64,          // a bad --pi-agent- option
    unavailable = 69,    // the sandbox method cannot work on this host
    internal = 70,       // a bug of pi-agent
    system_failure = 71, // the operating system refused something we need
    limit = 75,          // session limit or lock
    denied = 77,         // the policy, or a rule of the runner, says no
    configuration = 78,  // policy or host configuration is invalid
};

// In the order of the table in failure_kind.cpp. The numbers travel between processes of one build and mean nothing elsewhere.
enum class FailureKind : std::uint8_t {
    other, // no kind of its own: its code is the exit status's
    command_line,
    self_update,
    named_file,
    sandbox_method,
    limits_not_enforced,
    network_not_enforced,
    file_system,
    inside_session,
    no_systemd,
    sudo_missing,
    no_node,
    doctor_found,
    disk,
    record,
    runner_ended,
    no_progress,
    session_limit,
    drained,
    changed_meanwhile,
    busy,
    too_large,
    disk_limit,
    not_authorised,
    outside_roots,
    directory,
    masked,
    switched_off,
    root_caller,
    sudo_refused,
    namespaces,
    caller,
    by_hand,
    streams,
    tmpdir,
    start_asks,
    outside_job,
    root_only,
    sessions_outside,
    no_policy,
    invalid_policy,
    user_root,
    user_configuration,
    agent_program,
    agent_account,
    untrusted,
    protection,
    named_place,
    agent_home,
};
constexpr FailureKind last_failure_kind = FailureKind::agent_home;

struct KindFacts {
    FailureKind kind;
    ExitStatus status;
    const char *code;  // "E77-root"
    const char *title; // for the page of docs/troubleshooting.md and the answer of pi-agentctl explain CODE
};

// By exit status; the rows of each status begin with the one that has no kind of its own ("E77").
const std::vector<KindFacts> &failure_kinds();

// Of a kind; for `other`, or a kind that has another status, the row of the status alone.
const KindFacts &facts_of(FailureKind kind, ExitStatus status);
ExitStatus status_of(FailureKind kind);

// "see: pi-agentctl explain E77-root": the one pointer that ends a message. Empty for mistakes in a command line: these name the help.
std::string pointer_to(FailureKind kind, ExitStatus status);

} // namespace pi_agent
