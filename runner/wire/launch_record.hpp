// What the runner sends to pi-agent-exec over the control socket, and what comes back. Arguments and environment travel only here (design
// rule 3).
#pragma once

#include "common/base/request.hpp"

#include "common/policy/policy.hpp"
#include "common/policy/policy_paths.hpp"

namespace pi_agent {

// What pi-agent-exec takes from itself and the agent, for good.
enum class Restrictions : std::uint8_t {
    none,
    beside_unit, // Landlock and our filter: the unit brings the list of allowed calls
    all,         // that list as well (runner/filter/calls.toml)
};

struct LaunchRecord {
    std::string binary;
    std::vector<std::string> arguments;   // argv, argv[0] included
    std::vector<std::string> environment; // NAME=VALUE, complete
    std::string project;                  // the root's path inside
    std::string below;                    // the working directory beneath it, any bytes
    std::uint64_t cwd_inode = 0;          // what the runner's reader opened; must be found again
    unsigned umask = 077;
    OnTerminal on_terminal{}; // the session's terminal replaces these
    Restrictions restrictions = Restrictions::all;
    std::vector<std::string> mount_points = {}; // attached after systemd had built the view; no agent starts without them
    std::uint64_t open_files = 1024;            // the caller's soft limit; the session's hard limit bounds it
    std::uint64_t most_open_files = 0;          // by the policy, both limits instead (limits.files); 0: it says none
    Tracing tracing = Tracing::never;
    std::uint64_t hosts_processes = 0; // the inode of the host's PID namespace: a process in another one sees none of the host's processes
    bool has_mode_changer = false;     // somebody outside gives directories the set-gid bit (ModeRequest)
    bool keeps_project = false;        // the agent's files stay in their project of disk quotas (limits.disk)
    std::vector<std::string> denied_calls = {};  // by the policy, besides what every session is denied
    std::vector<std::string> allowed_calls = {}; // by the policy, of allowable_calls (common/policy/policy_paths.hpp)
    unsigned address_families = all_address_families;

    static void fields(auto &archive, auto &self)
    {
        archive(self.binary, self.arguments, self.environment, self.project, self.below, self.cwd_inode, self.umask);
        for (auto &one : self.on_terminal)
            archive(one);
        archive.bounded(self.restrictions, Restrictions::all, "the launch record has unknown restrictions");
        archive(self.mount_points, self.open_files, self.most_open_files);
        archive.bounded(self.tracing, Tracing::never, "the launch record has an unknown way of tracing");
        archive(self.hosts_processes, self.has_mode_changer, self.keeps_project, self.denied_calls, self.allowed_calls);
        archive.bounded(self.address_families, all_address_families, "the launch record has an unknown kind of sockets");
    }
};

constexpr std::uint64_t launch_type = 16; // the first number of the record
constexpr std::uint64_t stdio_type = 20;  // all of the packet before it, which comes with the standard descriptors

// In this order, and from two senders (receive_launch, runner/inside/agent_process.hpp): the descriptors come from the caller's side, in
// which root has no part (runner/as_user/project.hpp). Sends those that are open; the others are on the terminal.
inline void send_stdio(FdRef channel, const std::array<UniqueFd, 3> &stdio, Deadline deadline)
{
    std::vector<int> open;
    for (const auto &fd : stdio)
        if (fd) open.push_back(fd.get());
    send_packet(channel, Encoder().number(stdio_type).bytes(), open, deadline);
}

// `terminal` is empty when no descriptor is on the terminal, `mode_changer` unless the record asks for one.
inline void send_launch(FdRef channel, const LaunchRecord &record, FdRef terminal, FdRef mode_changer, Deadline deadline)
{
    Encoder encoder;
    encoder(launch_type, record);
    std::vector<int> descriptors;
    if (has_any(record.on_terminal)) descriptors.push_back(terminal.get());
    if (record.has_mode_changer) descriptors.push_back(mode_changer.get());
    send_record(channel, encoder.bytes(), descriptors, deadline);
}

// From pi-agent-exec: first `ready`, then `failed`, or `ended` after any number of `stopped`. These are a hostile peer's hints: systemd's
// own report decides.
struct ExecReady {
    static constexpr std::uint64_t type = 17;
    static void fields(auto & /*archive*/, auto & /*self*/) {}
};
struct ExecFailed {
    std::string text;
    static constexpr std::uint64_t type = 18;
    static void fields(auto &archive, auto &self) { archive.cut(self.text, 4096, "pi-agent-exec sent an overlong text"); }
};
struct ExecStopped { // the agent
    int number;      // by this signal
    static constexpr std::uint64_t type = 21;
    static void fields(auto &archive, auto &self) { archive.bounded(self.number, 64, "pi-agent-exec sent an impossible signal"); }
};
struct ExecEnded {
    bool by_signal;
    int value;
    static constexpr std::uint64_t type = 19;
    static void fields(auto &archive, auto &self)
    {
        archive(self.by_signal);
        archive.bounded(self.value, 255, "pi-agent-exec sent an impossible status");
    }
};
using ExecMessage = std::variant<ExecReady, ExecFailed, ExecStopped, SignalHeard, ExecEnded>;
inline ExecMessage decode_exec_message(std::string_view bytes)
{
    return decode_one_of<ExecMessage>(bytes, "pi-agent-exec sent an unknown message");
}

// What the launcher asks the process that gives directories the set-gid bit (runner/as_agent/home.hpp), and its answer.

// Comes with one descriptor, of the directory.
struct ModeRequest {
    unsigned mode = 0; // never with set-uid
    static void fields(auto &archive, auto &self) { archive.bounded(self.mode, 03777, "a mode was asked for that no directory gets"); }
};

struct ModeAnswer {
    int error = 0; // errno; 0: it is done
    static void fields(auto &archive, auto &self) { archive.bounded(self.error, 4095, "an impossible error was answered"); }
};

} // namespace pi_agent
