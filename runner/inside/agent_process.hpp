// Hears what to start, starts the agent inside its unit and waits for it: the working directory, the descriptors, the last restrictions,
// exec; and answers the agent's calls that its filter asks about.
#pragma once

#include "runner/filter/seccomp_filter.hpp"
#include "runner/wire/answer.hpp"

#include <sys/types.h>

namespace pi_agent {

struct ReceivedLaunch {
    LaunchRecord record;
    std::array<UniqueFd, 3> stdio; // complete
    UniqueFd terminal;             // the agent's end of the session's pty, when it has one
    UniqueFd mode_changer;         // its channel, when there is one
    UniqueFd connections;          // over which those of the record's ports come
};

// Throws ProtocolError; the runner is trusted, but a cut-off record must not become half a command.
ReceivedLaunch receive_launch(FdRef channel, Deadline deadline);

// Throws Failure(unavailable) where nothing is mounted at one of the mount points: then the runner put the mount into another process'
// mount table.
void require_mount_points(const LaunchRecord &record);

// Opens the working directory beneath the project, following no link, and changes into it. Throws Failure when it is not the one that was
// asked for: it moved meanwhile.
void enter_working_directory(const LaunchRecord &record);

// Makes the session's pty the controlling terminal of this process's session, where the launch has one.
void take_terminal(const ReceivedLaunch &launch);

// Starts the agent, in a process group of its own and in the background of its terminal, with exactly the three descriptors of `launch`.
// `calls`: the filter of this session (runner/filter/seccomp_filter.hpp), which this process itself stays out of. Throws Failure when the
// binary cannot be run.
pid_t start_agent(const ReceivedLaunch &launch, const std::vector<sock_filter> &calls = {});

// Waits for `agent`, reaping whatever else is left to this process, passing on each signal that arrives over `control`, and telling there
// when the agent was stopped.
ExecEnded wait_for_agent(pid_t agent, FdRef control);

// Leads what comes over `connections` to these ports of the loopback here, on threads of its own, for as long as this process lives. The
// other end is the wrapper (wrapper/session_client.hpp), outside. Only pipes come, which carry no descriptors, and nothing goes back over
// the channel.
void serve_ports(UniqueFd connections, std::vector<std::uint64_t> ports);

// Ends this process as the agent ended, so that systemd sees the same.
[[noreturn]] void end_like(const ExecEnded &ended);

// --- Landlock for the session (landlock(7)): no signals to and no abstract sockets of processes outside, and no files but those of the
// view.

// File system (Linux 5.19): only what is beneath "/" as seen here, and the regular files and devices among `stdio`, so that a directory
// descriptor that somebody sends over a socket leads nowhere. Scopes (Linux 6.12). What the kernel lacks, or a filter around this host
// withholds, is left out (docs: what is needed). Throws Failure when the kernel has them and they cannot be set.
struct LandlockInForce {
    bool at_all, scopes;
};
LandlockInForce restrict_with_landlock(const std::array<UniqueFd, 3> &stdio);

// For the agent, between fork and exec: puts it below the launcher, in a domain of its own that denies nothing more. A process can trace
// only its own domain and those below, so the launcher is out of reach, by any call that looks into another process. True where there is no
// Landlock, false with errno where it fails.
bool stand_below_launcher() noexcept;

// For people: landlock_is_there, or why a session here goes without.
constexpr const char *landlock_is_there = "there";
std::string landlock_here();

// --- The filters of system calls that pi-agent-exec installs, besides a unit's own.

// What happens to a call that gives the set-gid bit to an existing file: only somebody who looks can tell a directory from a program.
enum class SetGidCalls { refused, asked };

// Lets only the calls of calls.toml through, no new namespaces, only local, Internet and netlink sockets, no other personality and no
// real-time scheduling. For a unit, an allow-list in SystemCallFilter=, RestrictNamespaces=, RestrictAddressFamilies=, LockPersonality= and
// RestrictRealtime= (systemd.exec(5)) do that. Call it before install_agent_call_filter(), which goes further. Throws Failure.
void install_call_filter();

// What every agent is denied, whatever else filters its calls. Holds for this process and everything it starts; it can gain no privileges
// any more. Throws Failure: without the filter nothing may run. With `asked`, returns the descriptor at which the calls of
// set_gid, nobodys_group, plain_list and tuning (calls.toml) wait for an answer (seccomp_unotify(2)); once it is closed they end with
// ENOSYS. Returns none, and those of set_gid and tuning are refused, where the kernel is too old, or where somebody outside already has
// such a descriptor: a process can have only one.
UniqueFd install_agent_call_filter(SetGidCalls set_gid = SetGidCalls::refused);

// Besides these, where only the agent's account would keep a debugger inside its session: refuses what debuggers do (trace of
// calls.toml). Throws Failure.
void refuse_tracing();

// What this policy refuses besides, and what it does not let through: for a process that becomes the
// agent next. Nothing for an empty program. False, with errno, where the kernel does not take it.
bool install_session_call_filter(const std::vector<sock_filter> &program) noexcept;

// Besides these, where a quota counts the agent's files: refuses what would take them out of their project (attribute of calls.toml).
// Throws Failure.
void refuse_attributes();

// --- The filter of one session: what the policy refuses of system calls and sockets, and what it does not let through. Made at each start,
// for the filters of the build are the same for all policies.

// What a session's own filter refuses.
struct SessionCalls {
    std::vector<std::string> refused = {}; // by name: EPERM; what this machine does not have needs no refusal
    bool keeps_personality = false;        // personality(2), except the usual one, that without random addresses, and the question: EPERM
    std::optional<unsigned> families = {}; // socket(2) of a family that is not in the set (address_families): EAFNOSUPPORT
};

// A program of the kernel's (seccomp(2)); without instructions where nothing is refused. Calls of another architecture end the process.
std::vector<sock_filter> session_call_program(const SessionCalls &calls);

// --- Answers to the agent's calls that the filter asks about (set_gid, nobodys_group, plain_list and tuning in runner/filter/calls.toml).

// `path` as the process names it, translated for another one: /proc/self and /dev/fd become those of `thread`.
std::string seen_by(pid_t thread, const std::string &path);

// Runs on a thread of its own, for as long as this process lives. `questions`: what install_agent_call_filter() returned. `changer`: the
// channel of a process that changes modes (runner/as_agent/home.hpp). This thread only finds out what a caller means, as that
// caller could, and that decides nothing: no call that gives the bit goes on (seccomp_unotify(2) says why). Giving a file the group that it
// already has means doing nothing. A list that equals a mode is set as by chmod(2). Any other list goes on, and the kernel gives nobody the
// bit by it.
// `has_own_numbers`: processes of other sessions have no numbers here.
void answer_agent_calls(UniqueFd questions, UniqueFd changer, bool has_own_numbers);

// An access control list that says no more than a mode does: owner, group and others.

// Three entries in the kernel's format (linux/posix_acl_xattr.h).
struct PlainList {
    std::uint32_t version;
    struct {
        std::uint16_t who, may;
        std::uint32_t id;
    } entries[3];
};
static_assert(sizeof(PlainList) == plain_list_size);

// Empty for a list of anything else than those three.
inline std::optional<unsigned> mode_of(const PlainList &list)
{
    constexpr std::uint32_t known_version = 2;
    constexpr std::array<std::uint16_t, 3> owner_group_others = {0x01, 0x04, 0x20};
    unsigned mode = 0;
    for (std::size_t index = 0; index < owner_group_others.size(); ++index) {
        if (list.entries[index].who != owner_group_others[index] || list.entries[index].may > 7) return std::nullopt;
        mode = mode << 3U | list.entries[index].may;
    }
    return list.version == known_version ? std::optional(mode) : std::nullopt;
}

} // namespace pi_agent
