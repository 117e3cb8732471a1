// How processes answer each other, and what wrapper, runner and pi-agent-exec say to each other.
#pragma once

#include "common/base/request.hpp"
#include "common/policy/policy.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"

namespace pi_agent {

// --- What a child of root's sends to its parent (runner/root/errand/errand.hpp): answers, progress and failures.

// The first byte of each packet.
constexpr char answer_tag = 'A';
constexpr char progress_tag = 'P';
constexpr char failure_tag = 'F';

// For tasks: messages that Child::receive understands.
void send_answer(FdRef channel, std::string_view bytes, const std::vector<int> &fds = {});
// A message with its descriptors (decode_packet).
template <typename Message>
requires std::is_class_v<Message> && requires(Encoder &to, const Message &one)
{
    Message::fields(to, one);
}
void send_answer(FdRef channel, const Message &message)
{
    Encoder encoder;
    encoder(message);
    send_answer(channel, encoder.bytes(), encoder.descriptors());
}
// Sends an answer of up to record_limit bytes, in as many messages as it needs.
void send_long_answer(FdRef channel, std::string_view bytes);
// "Still alive and working": restarts the parent's patience. `doing` is for people.
void send_progress(FdRef channel, std::string_view doing = {});
// The parent then throws it. Throws nothing itself: without a message the parent sees a child that died.
void send_failure(FdRef channel, const Failure &failure) noexcept;

// --- How long processes wait for each other during a start. A process that ends takes the others along, so these are for what stalls.

// For one whole config sync, on busy disks as well; each of its steps has the children's own patience (runner/root/errand/errand.hpp).
constexpr int sync_patience_seconds = 300;
// For the launch record: before it the runner waits for the sync and other children.
constexpr int launch_patience_seconds = sync_patience_seconds + 100;

// For a session that the administrator ends, from the first message to the last look: no step takes longer, and a process that is stopped
// is passed over. Together less than 15 seconds.
constexpr int asked_end_patience_seconds = 7;  // for the runner: the agent's two seconds of grace, its unit's stop, the record
constexpr int killed_end_patience_seconds = 3; // for systemd and the cleanup, after the runner was killed
constexpr int forced_end_patience_seconds = 4; // for what this process then does without them
static_assert(asked_end_patience_seconds + killed_end_patience_seconds + forced_end_patience_seconds < 15);

// The time of the unit that cleans up a session (TimeoutStopSec=), and of each part: the last processes, docker, a runner that must record
// the end, and then placeholders and temporary files.
constexpr int cleanup_unit_seconds = 20;
constexpr int cleanup_group_seconds = 4;
constexpr int cleanup_gate_seconds = 1; // it has one process
constexpr int cleanup_docker_seconds = 2;
constexpr int cleanup_record_seconds = 3;
constexpr int cleanup_placeholder_seconds = 2;
constexpr int cleanup_removal_seconds = 7;
static_assert(cleanup_group_seconds + cleanup_gate_seconds + cleanup_docker_seconds + cleanup_record_seconds + cleanup_placeholder_seconds +
                  cleanup_removal_seconds <
              cleanup_unit_seconds);

// --- What the child on the caller's side reports to its parent while a session runs: the first byte of each answer.

constexpr char handed_over_tag = 'S'; // pi-agent-exec has the standard descriptors
constexpr char gone_tag = 'E';        // the wrapper is gone, or broke the protocol
constexpr char message_tag = 'M';     // followed by the bytes of a message of the wrapper's

constexpr int request_patience_seconds = 5; // for the wrapper's request

// --- The names of a session and its units.

// An id is 128 random bits in hex. It is a part of unit names and paths, so its alphabet is fixed.
bool is_session_id(const std::string &text) noexcept;
std::string scope_name(const std::string &id);                        // pi-agent-run-ID.scope
std::optional<std::string> session_of_scope(const std::string &unit); // its ID, when it is such a name
std::string service_name(const std::string &id);                      // pi-agent-ID.service
std::string cleanup_name(const std::string &id);                      // pi-agent-cleanup-ID.service
std::string gate_name(const std::string &id);                         // pi-agent-gate-ID.service

// --- What the runner sends to pi-agent-exec over the control socket, and what comes back. Arguments and environment travel only here
// (design rule 3).

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
    std::vector<std::uint64_t> ports = {}; // that the user's own programs reach, over a channel beside the standard descriptors

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
        archive(self.ports);
    }
};

constexpr std::uint64_t launch_type = 16; // the first number of the record
constexpr std::uint64_t stdio_type = 20;  // all of the packet before it, which comes with the standard descriptors

// In this order, and from two senders (receive_launch, runner/inside/agent_process.hpp): the descriptors come from the caller's side, in
// which root has no part (runner/as_user/project.hpp). Sends those that are open; the others are on the terminal. Last, the channel of
// ports.
inline void send_stdio(FdRef channel, const std::array<UniqueFd, 3> &stdio, FdRef connections, Deadline deadline)
{
    std::vector<int> open;
    for (const auto &fd : stdio)
        if (fd) open.push_back(fd.get());
    if (connections.get() >= 0) open.push_back(connections.get());
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

// --- What the launcher asks the process that gives directories the set-gid bit (runner/as_agent/home.hpp), and its answer.

// Comes with one descriptor, of the directory.
struct ModeRequest {
    unsigned mode = 0; // never with set-uid
    static void fields(auto &archive, auto &self) { archive.bounded(self.mode, 03777, "a mode was asked for that no directory gets"); }
};

struct ModeAnswer {
    int error = 0; // errno; 0: it is done
    static void fields(auto &archive, auto &self) { archive.bounded(self.error, 4095, "an impossible error was answered"); }
};

// --- What a user asks about their own sessions, and what root answers (runner/root/own/questions.hpp): one question, one answer, each
// bounded.

// The question: one packet, which is in the socket before sudo starts. It names no user: root knows who asks.

enum class OwnSubject : std::uint64_t { sessions, state, stop };

constexpr std::size_t question_limit = 4096; // bytes
constexpr std::size_t stop_limit = 64;       // sessions in one question

struct OwnQuestion {
    OwnSubject about{};
    std::vector<std::string> sessions = {}; // stop: whole ids
    // No request of a start begins like this (common/base/channel.cpp).
    static constexpr std::uint64_t type = 0x70692d61736b0002; // "pi-ask", version 2

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.about, OwnSubject::stop, "a question is about something unknown");
        archive.bounded(self.sessions, stop_limit);
        archive.require([&] { return self.sessions.empty() == (self.about != OwnSubject::stop); },
                        "a question names sessions exactly when it is to stop them");
        archive.require([&] { return are_whole_ids(self.sessions); }, "a question names something that is not the id of a session");
    }

private:
    // The beginning of an id may fit another session by the time that root looks, so root is told whole ones alone.
    static bool are_whole_ids(const std::vector<std::string> &sessions)
    {
        return std::all_of(sessions.begin(), sessions.end(), is_session_id) || !defence_is_on("whole-id");
    }
};

// Throws ProtocolError for anything that is not exactly one question.
inline OwnQuestion decode_question(std::string_view bytes)
{
    if (bytes.size() > question_limit)
        throw ProtocolError("a question larger than " + std::to_string(question_limit) + " bytes was refused");
    return std::get<OwnQuestion>(decode_one_of<std::variant<OwnQuestion>>(bytes, "the first message is not a question"));
}

// The answer: one record. Its texts are harmless, as in the record (common/record/record_event.hpp).

constexpr const char *too_many_answers = "an answer is longer than any that root sends";

// What a session uses at this moment, from the kernel (runner/root/method/sandbox.hpp).
struct SessionUsage {
    std::optional<std::uint64_t> processes = {}; // in its sandbox
    std::optional<std::uint64_t> memory = {};    // bytes, of them all; needs the memory controller
    std::optional<std::uint64_t> cpu_usec = {};  // since its start; needs control groups of version 2

    static void fields(auto &archive, auto &self) { archive(self.processes, self.memory, self.cpu_usec); }
};

struct SessionView {
    std::string id;
    std::uint32_t uid = 0;
    std::string user;                                // "uid 1000" where the user database has none of that number
    std::string account, project, directory, method; // each empty until the agent starts, as are the others
    std::string unit, program;                       // unit: with method systemd
    std::optional<std::uint64_t> started_usec = {};  // since 1970
    SessionUsage usage = {};

    static void fields(auto &archive, auto &self)
    {
        archive(self.id);
        archive.bounded(self.uid, UINT32_MAX, "an answer carries an impossible uid");
        archive(self.user, self.account, self.project, self.directory, self.method, self.unit, self.program);
        archive(self.started_usec, self.usage);
    }
};
constexpr std::size_t view_limit = 4096; // sessions in one answer

// How much disk is kept for a user.
struct HomeSize {
    std::uint64_t all = 0;    // bytes on disk
    std::uint64_t caches = 0; // of these, in cache_places

    static void fields(auto &archive, auto &self) { archive(self.all, self.caches); }
};

struct SizeOfState {
    std::string user, account, path;
    std::uint64_t sessions = 0;
    std::vector<HomeSize> home = {}; // none where it cannot be measured
    std::uint64_t scratch = 0;
    std::string problem = {};

    static void fields(auto &archive, auto &self)
    {
        archive(self.user, self.account, self.path, self.sessions);
        archive.bounded(self.home, 1, too_many_answers);
        archive(self.scratch, self.problem);
    }
};

struct OwnAnswer {
    std::vector<SessionView> sessions = {}; // those that live; of stop: those that were ended
    std::vector<SizeOfState> states = {};   // state
    std::vector<std::string> left = {};     // stop: those that do not end
    static constexpr std::uint64_t type = 20;

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.sessions, view_limit, too_many_answers);
        archive.bounded(self.states, view_limit, too_many_answers);
        archive.bounded(self.left, stop_limit);
    }
};

// What comes back: an answer, or the reason for its absence.
using OwnReply = std::variant<FailureReport, OwnAnswer>;
inline OwnReply decode_reply(std::string_view bytes)
{
    return decode_one_of<OwnReply>(bytes, "the runner sent an unknown answer");
}

} // namespace pi_agent
