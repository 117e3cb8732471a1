// A session's sandbox as data: what a method must build, with which limits, as which unit or command; how it ended; what the agent is told.
#pragma once

#include "common/host/account.hpp"
#include "runner/wire/answer.hpp"

namespace pi_agent {

// --- What a method must build for a session, and how the session ended, whatever the method.

// A part of the session directory that the unit shows at another path.
struct Bind {
    std::string source, target;
    bool read_only;
    bool may_be_missing = false;
};

// What the session must look like. A method that cannot honour a part of it says so when the policy is read
// (common/policy/policy_sections.hpp), or refuses to start.
struct SandboxPlan {
    std::string session_id;
    Uid user; // the caller
    Uid agent;
    Gid agent_group;
    std::vector<Gid> groups;           // supplementary: those that granted the roots
    std::vector<gid_t> account_groups; // groups of the agent's account, which systemd looks up itself
    std::string root_directory;
    std::vector<Bind> binds;
    std::string home_path;
    std::vector<std::string> writable_roots; // of projects, each at its own path
    NetworkPolicy network;
    LimitsPolicy limits = {};
    Tracing tracing = Tracing::automatic;
    CallsPolicy calls = {};
    std::vector<std::string> devices = {};    // nodes of the host
    std::vector<std::string> late_files = {}; // of the root directory, outside of its binds: written once the sandbox is being built
};

// How the launcher ended, in the words of systemctl show.
struct SandboxResult {
    bool ended;         // and no process of the session runs any more
    std::string result; // "success", "exit-code", "signal", "oom-kill", …
    int code;           // CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0 when it never ran
    int status;         // exit status or signal number
};

// How the agent ended: by the sandbox's report (systemd's, bwrap's), and where that does not say, by the launcher's. The first process of a
// PID namespace cannot die of a signal that it sends itself, so there pi-agent-exec exits with 128 + the signal of the agent and reports
// the signal. That report is a hostile peer's hint: it counts only where it agrees with what was seen from outside, or where nothing was.
// `killed`: the runner had all of it killed. Throws Failure(system_failure) when nothing tells.
AgentEnded agent_end(const SandboxResult &seen, const std::optional<ExecEnded> &said, bool killed = false);

// What is seen of an engine that outlived the launcher and was killed for it: a signal as its end then says nothing about the agent.
SandboxResult without_own_kill(SandboxResult seen);

// --- What the agent is told about the box it works in, as instructions in the file /AGENTS.md of its view.

// What the notes tell of this session, beside its policy.
struct BoxFacts {
    Policy policy;
    std::string project; // the root's path
    std::string home;
    std::string account;                      // the agent's
    std::vector<std::string> hidden = {};     // mount points in the project that look empty, relative to it; any bytes
    std::vector<std::string> read_only = {};  // paths in the project that are protected, relative to it; any bytes
    bool masked = false;                      // some of it cannot be read
    std::vector<std::string> toolchains = {}; // of the user's, read-only: paths as the agent sees them; any bytes
    std::vector<std::string> caches = {};     // copies of the user's, whose changes are not kept: likewise
    bool limited = true;                      // the sandbox holds the session to limits at all
    bool confined = true;                     // there is a sandbox
    bool knows_ids = true;                    // it knows the ids of other accounts and groups, to keep them in access control lists
};

// What no policy changes, for `pi-agentctl explain`, which says how a session differs: words of the lines in the notes.
inline constexpr std::string_view always_different = "set-id files, other owners and groups, core files, niceness of others, perf, "
                                                     "namespaces, systemctl, sudo, variables and dotfiles of the user";

// A few lines. They hold nothing that could pass for somebody else's instruction: names from others are escaped and few.
std::string box_notes(const BoxFacts &facts);

// --- Limits that no policy changes: one user's sessions must leave room for everybody else's.

constexpr std::size_t start_limit = 16;        // of one user being made at once; each holds one of root's few bus connections
constexpr std::size_t question_slot_limit = 4; // of one user being answered at once, about their own sessions
constexpr std::size_t submount_limit = 64;     // hidden in one session; each costs a mount, of fs.mount-max for the whole host
constexpr std::size_t guard_limit = 512;       // mount points among the host's for what is protected in one session, and for what is masked
constexpr std::size_t protect_limit = 16'384;  // and in the session's own mount table
constexpr std::size_t standin_limit = 2500;    // placeholders of one session; each is a link, of up to a page, in everybody's file system
constexpr std::size_t mask_search_limit = 200'000; // entries of a project that the search for masked files looks at
constexpr int mask_search_seconds = 3;

constexpr std::int32_t agent_oom_score = 500; // of -1000 to 1000; the process with more is killed first

// Of memory, for the temporary directories of one session under `scratch: tmpfs`. What they hold counts against the session's memory, too.
constexpr const char *scratch_memory_share = "20%";

// --- Tells a user about the limits that a session reached.

struct LimitEvents {
    std::uint64_t killed = 0;        // processes that the kernel killed for want of memory
    bool own_memory = false;         // the session itself was at its limit
    std::uint64_t refused_tasks = 0; // starts of processes and threads
};

// For the end of a session, in words: what happened, the limit with its place in the policy, what to do. `result` as in SandboxResult.
std::vector<std::string> limit_notices(const LimitsPolicy &limits, const LimitEvents &events, const AgentEnded &ended,
                                       const std::string &result, Clock::duration lasted);

// --- What a session's unit has used.

struct UnitUsage {
    std::optional<std::uint64_t> memory_peak; // bytes
    std::optional<std::uint64_t> cpu_usec;
};

// --- Features that the running systemd has and the oldest supported one lacks: decided by its version, here and nowhere else.

constexpr unsigned oldest_systemd = 252;
constexpr unsigned systemd_with_private_pids = 257;
constexpr unsigned systemd_with_log_sockets = 257;
constexpr unsigned systemd_with_identity_ids = 257;

// What PrivateUsersEx=identity maps: the first 65,536 ids, each to itself (systemd.exec(5)).
constexpr std::uint32_t identity_ids = 65'536;

struct SystemdFeatures {
    unsigned version;
    bool private_pids; // PrivatePIDs=: a session has process numbers of its own, and pi-agent-exec is 1
    bool log_sockets;  // BindLogSockets=: where it exists, the journal's sockets come into every root tree unless it says no
    bool identity_ids; // PrivateUsersEx=identity: a session's user namespace knows more ids than root's and the agent's
};

// `version` is the manager's own text ("257.9-1~deb13u1"). Throws Failure(unavailable) when it is too old or cannot be parsed.
SystemdFeatures systemd_features(const std::string &version);

// --- The agent's unit as data: which properties, with which values. Pure, so that it can be tested and audited as a table.

// The D-Bus shapes that systemd wants (org.freedesktop.systemd1(5)).
struct NameFilter { // (bas)
    bool allow;
    std::vector<std::string> names;
};
struct BindList { // a(ssbt)
    std::vector<Bind> binds;
};
struct PairList { // a(ss)
    std::vector<std::pair<std::string, std::string>> entries;
};
struct Command { // a(sasb), one command
    std::vector<std::string> arguments;
};
struct SignedNumber { // i
    std::int32_t value;
};
struct ExitStatuses { // (aiai)
    std::vector<std::int32_t> statuses, signals;
};
struct AddressRanges { // a(iayu)
    std::vector<IpRange> ranges;
};
using PropertyValue = std::variant<bool, std::uint32_t, std::uint64_t, SignedNumber, std::string, std::vector<std::string>, NameFilter,
                                   BindList, PairList, Command, ExitStatuses, AddressRanges>;

struct UnitProperty {
    std::string name;
    PropertyValue value;
};

constexpr const char *user_slice_prefix = "pi-agent-u";
// Where the slices of all users are, below systemd's own group: each dash in a slice's name is a level (systemd.slice(5)).
constexpr const char *slices_place = "/pi.slice/pi-agent.slice";

// pi-agent-uUID.slice: all sessions of one user.
std::string slice_name(Uid user);
// Where a unit in that slice is.
std::string place_in_slice(Uid user, const std::string &unit);

// The unit of a session whose method has one. In the unit of a container root's podman makes it; docker's starts only its client, and the
// container joins the unit.
std::vector<UnitProperty> session_properties(SandboxMethod method, const SandboxPlan &plan, const SystemdFeatures &features);
std::vector<UnitProperty> scope_properties(Uid user);
// The unit that removes the session's directory when the agent's unit has ended, in the host's own namespaces. As an ExecStopPost= of the
// agent's unit it would run, as root, among mounts whose targets the agent can move.
std::vector<UnitProperty> cleanup_properties(const std::string &session_id, Uid user);

// --- What a host's own drop-ins may change in the units of a session (systemd.unit(5), service.d).

// How an administrator leaves pi-agent's units out.
inline constexpr const char *without_drop_ins = "A drop-in for all services is in the way: an empty file of its name in "
                                                "/etc/systemd/system/pi-agent-.service.d leaves pi-agent's units "
                                                "out (systemd-delta --type=extended lists drop-ins)";

// The settings of a drop-in that may weaken what confines a session, or start something else in it, in their order.
std::vector<std::string> settings_in_the_way(std::string_view text);

// Throws Failure(unavailable) that names the file and its settings.
void require_harmless_drop_in(const std::string &file, std::string_view text);

// --- A session's plan as an engine's arguments (docker-run(1), podman-run(1)). Pure as well.

// The option for the container's host name. Throws Failure(unavailable) where an engine accepts no name with the host's characters.
std::string host_name_argument(const std::string &engine, const std::string &name);

// The policy's image, whose root directory is below the view.
struct EngineImage {
    std::string id = {};        // a name could mean another one by now; empty without one, and podman's root directory is then the plan's
    std::string driver = "vfs"; // of podman's store that holds it: "overlay" or "vfs"
};

// What an engine needs besides the plan.
struct EngineContainer {
    std::string host_name; // as the kernel reports it
    EngineImage image = {};
    std::vector<Bind> tree = {};    // the parts of the plan's root directory that are shown over the image's
    std::string control_group = {}; // docker's: of the session's unit, from the top of the hierarchies: "/pi.slice/….service"
};

constexpr const char *docker_socket = "/run/docker.sock"; // of its daemon
constexpr const char *door_inside = "/run/pi-agent/door"; // where the launcher fetches its control socket
// Where docker looks for settings of its caller's: an empty directory that only the session's unit has.
constexpr const char *docker_directory = "/run/pi-agent/docker";
// Where podman keeps what it knows of its one container: a tmpfs that only the session's unit has.
constexpr const char *podman_directory = "/run/pi-agent/podman";
constexpr const char *podman_images = "/var/lib/containers/storage"; // of root's podman, where nothing says otherwise

// In the directory of a session that may have a container of docker's, and the container's name.
constexpr const char *docker_mark = "docker";
std::string container_name(const std::string &session_id);

// argv of the engine. Throws Failure(internal) where a path has a character that the engine would take for one of its own.
std::vector<std::string> docker_command(const SandboxPlan &plan, const EngineContainer &container);
std::vector<std::string> podman_command(const SandboxPlan &plan, const EngineContainer &container);

// --- A session's plan as bubblewrap's arguments (bwrap(1)).

// `info_fd`: where bwrap writes the number of its first process inside.
std::vector<std::string> bwrap_options(const SandboxPlan &plan, int info_fd);

// What bwrap runs: pi-agent-exec as the agent, by setpriv(1).
std::vector<std::string> bwrap_command(const SandboxPlan &plan);

// --- The gate of a session as data: its unit, its order, what its session is told of it, and how pi reaches the providers behind it.

} // namespace pi_agent
