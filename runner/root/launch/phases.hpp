// One session from an authenticated caller to the agent's end (docs/architecture-launch.md), and the phases of its start, in their order.
// Each takes the earlier ones, and nothing else makes one. What they hold is released in reverse order.
#pragma once

#include "runner/root/confined/session_end.hpp"

#include "runner/root/door/admission.hpp"
#include "runner/root/view/root_tree.hpp"

namespace pi_agent {

// Tells the wrapper how the agent ended. Throws Failure for a start that ends before the agent runs, which is then not recorded yet.
// Leaves nothing mounted or on disk except the agent's own state.
void run_session(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record);

// --- First: root's own files allow the caller, and the process has left the caller's control group.

// In that group the caller can freeze or kill the process. Until it has left, it touches nothing that others share: it changes itself, asks
// systemd, and reads root's own files.
struct Entered {
    // Borrows everything. Throws the Failure for the user.
    Entered(const AsRoot &as_root, const Account &asking, FdRef wrappers_socket, SessionRecord &recorded);

    void tell(const std::vector<std::string> &notices) noexcept { to_wrapper.tell_all(notices); }
    // Shows the step of the preparation on the user's terminal ("waiting for …", "reading …") if it takes longer than half a second. Never
    // waits: a wrapper that does not read misses it.
    void show(const std::string &doing);
    // Says what comes next, for a user who would wait for seconds without a word. Never waits either.
    void begin(const std::string &doing) noexcept { to_wrapper.tell_at_once(Preparing{doing, false}); }
    // tell() and show() as functions, for code that knows no Entered.
    [[nodiscard]] auto teller()
    {
        return [this](const std::string &notice) { tell({notice}); };
    }
    [[nodiscard]] auto shower()
    {
        return [this](const std::string &doing) { show(doing); };
    }

    const AsRoot &root;
    const Account &caller;
    FdRef wrapper;
    SessionRecord &record;
    const std::string id;
    Deadline next_shown = Clock::now() + std::chrono::milliseconds(500);
    ToWrapper to_wrapper;
    UniqueFd slot; // counts as one start of the caller
    const StartStamp stamp;
    Policy policy; // once admitted, as it holds for the caller
    const std::unique_ptr<Sandbox> sandbox;
    const UniqueFd termination;
    const Admission admission;
    const Account worker;                       // the agent, for our own programs; its groups are checked later
    const std::vector<EnvAssignment> env_names; // of the policy's files, without their values
};

// --- Second: the caller's request and directory, opened by a child with the caller's rights.
struct Heard {
    explicit Heard(Entered &entered);

    // Only sessions with a network of hosts.
    [[nodiscard]] bool has_gate() const { return policy.network.mode == NetworkMode::hosts && defence_is_on("gate"); }

    Receiver receiver;
    Request request;
    const UniqueFd job; // of the cluster; the session ends with it
    const OpenedProject project;
    const Policy &policy; // as it holds for this session, of the project
    OpenedHome home;      // the caller's
    ProjectGuards guards; // searches while the start goes on
    const AgentPlaces agents;
    const std::string tmpdir; // named by the caller, below the project; empty if not
};

// Names by which servers of the session's own are reached, as on the host: the host's own, and those that its /etc/hosts gives the
// loopback. Not those that a rule names: these are reached outside.
std::vector<std::string> names_inside(const NetworkPolicy &network);

// --- Third: others can see the session, its user's state is locked, and the agent's home exists.
struct OpenedSession {
    // Takes the slot of `entered`: from now on it counts as a session.
    OpenedSession(Entered &entered, Heard &heard);

    const SessionDirectory directory;
    Ending ending;
    EarlyMessages early;
    const SessionWatch watch; // events that end the session
    bool waited = false;      // for another start of the same agent
    StateDirectory state;
    const HeldDisk disk;            // by limits.disk
    const std::string project_path; // where the agent sees the project
    const UniqueFd locked_settings; // empty without settings_lock
    const UniqueFd locked_mcp;      // the policy's mcp.json; empty without mcp_lock
    const UniqueFd defaults;
    const std::vector<std::string> placeholders; // for the keys of the policy's providers, which its gate holds
    const EnvironmentInput environment;          // what the policy and this session set, without the values of the policy's files
};

// The configuration is up to date in the home, as it must be before an agent sees it. Made only by bring_config_in.
class Synced {
    friend Synced bring_config_in(Entered &entered, Heard &heard, OpenedSession &session);
    explicit Synced(std::vector<EnvAssignment> of_files) : host_files(std::move(of_files)) {}

public:
    std::vector<EnvAssignment> host_files; // variables of the caller's own files
};

// Reads as the caller and writes as the agent, then releases the state to other starts; and reads the caller's variables.
Synced bring_config_in(Entered &entered, Heard &heard, OpenedSession &session);

// --- Fourth: the gate of a session with a network of hosts; no other session has one. It is being started, and waits for its order.

// Before the view is built, so that systemd does its part beside us. Not earlier, because the phase before may wait for another start, or
// refuse this one.
std::unique_ptr<SessionGate> ask_for_gate(const Entered &entered, const Heard &heard, const OpenedSession &session);

// --- Fifth: the tree that the session will see.
struct BuiltView {
    BuiltView(Entered &entered, Heard &heard, OpenedSession &session);

    // Set already here if settings are locked, because they are mounted over the agent's. Also if this start had to wait, because then
    // others wait and should go on sooner.
    std::optional<Synced> synced;
    const UniqueFd scratch;
    RootTree tree;
    const ShownDevices devices;
    HomeMounts home_mounts;
    const std::vector<Gid> further_groups; // of its processes, beside the account's
};

// --- Sixth: the sandbox is being built, while the runner fetches what it needs. The launcher in it waits for the launch record.

// Once the launcher runs: from here on connections of the session arrive at the gate. Reads the keys of providers.
void open_gate(const Entered &entered, const Heard &heard, SessionGate &gate);

// What the runner fetched meanwhile.
struct Fetched {
    Synced synced;
    ShownHome home;                                         // the visible part of the caller's home
    std::map<std::string, std::string> certificates_inside; // variables that name files of certificates: their paths inside
    bool has_ssh_key, has_signing_key;
    GitSigning unsigned_for; // for whom git would sign, and cannot
};

struct Launched {
    // A problem from here on ends the sandbox. `asked_gate`: from ask_for_gate.
    Launched(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, std::unique_ptr<SessionGate> asked_gate);

    Clock::time_point begun;
    const UniqueFd control; // pi-agent-exec's socket
    const std::unique_ptr<SessionGate> gate;
    UniqueFd denials;       // for what the gate tells; empty without a gate
    ScratchSweep leftovers; // of other sessions
    Fetched fetched;
};

// --- Seventh: messages for the user, their terminal, and the data for pi-agent-exec.

// Only for a session whose configuration is up to date.
struct Presented {
    Presented(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, Launched &launched);

    const ShellPlaces shell; // what the caller's shell sets, as far as it holds inside
    const EnvironmentInput environment;
    UniqueFd terminal; // the agent's end of the session's pty, if it has one
    const LaunchRecord launch;
    std::optional<Child> modes; // gives directories the set-gid bit while the session lives
};

} // namespace pi_agent
