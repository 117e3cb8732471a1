// One session from an authenticated caller to the agent's end (docs/architecture.md), and the phases of its start, in their order. Each
// takes those before it and is made by nothing else; what they hold ends backwards.
#pragma once

#include "common/decide/agent_places.hpp"
#include "runner/plan/environment.hpp"
#include "runner/root/confined/session_end.hpp"
#include "runner/root/door/admission.hpp"
#include "runner/root/errand/session_watch.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/session/state_directory.hpp"
#include "runner/root/session/to_wrapper.hpp"
#include "runner/root/view/protect.hpp"
#include "runner/root/view/root_tree.hpp"
#include "runner/wire/launch_record.hpp"
#include "runner/wire/user_files.hpp"

#include <memory>

namespace pi_agent {

// Tells the wrapper how the agent ended. Throws Failure for everything that ends before the agent has run, which is not recorded yet then.
// Leaves nothing mounted or on disk but the agent's own state.
void run_session(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record);

// --- First: admitted by root's own files, and out of the caller's control group.

// Until the process has left the group nothing is touched that others share: only what concerns the process itself, asks systemd, or is
// read from root's own files. The caller can freeze or kill it there, and from then on neither.
struct Entered {
    // Borrows all of it. Throws the Failure that the user is to see.
    Entered(const AsRoot &as_root, const Account &asking, FdRef wrappers_socket, SessionRecord &recorded);

    void tell(const std::vector<std::string> &notices) noexcept { to_wrapper.tell_all(notices); }
    // Tells the user's terminal what the preparation is at, "waiting for …", "reading …", once it takes longer than half a second. Never
    // waits: a wrapper that does not read misses it.
    void show(const std::string &doing);
    // Both, for others to call.
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
    UniqueFd slot; // counts as a start of the caller's
    const StartStamp stamp;
    const Policy policy;
    const std::unique_ptr<Sandbox> sandbox;
    const UniqueFd termination;
    const Admission admission;
    const Account worker;         // the agent, for our own programs: what its groups are is judged later
    EnvironmentInput environment; // without the values of the policy's files
};

// --- Second: what the caller asks for, and where, as a child that is the caller has opened it.

struct Heard {
    explicit Heard(Entered &entered);

    Receiver receiver;
    Request request;
    const OpenedProject project;
    OpenedHome home;      // the caller's
    ProjectGuards guards; // searches while the start goes on
    const AgentPlaces agents;
    const std::string tmpdir; // that the caller names, beneath the project; empty for none
};

// --- Third: the session can be seen by others, its user's state is locked, and the agent's home is there.

struct OpenedSession {
    // Takes the slot of `entered`: from then on it is a session, and counted as one.
    OpenedSession(Entered &entered, Heard &heard);

    const SessionDirectory directory;
    Ending ending;
    EarlyMessages early;
    const SessionWatch watch; // what ends the session meanwhile
    bool waited = false;      // for another start of the same agent
    StateDirectory state;
    const std::string project_path; // where the agent sees the project
    const UniqueFd locked_settings; // none without settings_lock
    const UniqueFd defaults;
};

// The configuration was brought in line, whose result a home must have before an agent sees it. Made only by bring_config_in.
class Synced {
    friend Synced bring_config_in(Entered &entered, Heard &heard, OpenedSession &session);
    Synced() = default;
};

// Reads as the caller and writes as the agent, then lets other starts at the state; and reads the caller's variables.
Synced bring_config_in(Entered &entered, Heard &heard, OpenedSession &session);

// --- Fourth: the tree that the session will see.

struct BuiltView {
    BuiltView(Entered &entered, Heard &heard, OpenedSession &session);

    // Already, where the settings are locked, which are mounted over the agent's and must be there; and where one start waits others do,
    // and it is over sooner.
    std::optional<Synced> synced;
    const UniqueFd scratch;
    RootTree tree;
    HomeMounts home_mounts;
};

// --- Fifth: the sandbox is being built, and meanwhile what it needs is fetched. What is started there waits for the launch record.

struct Launched {
    // A problem from here on ends the sandbox.
    Launched(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view);

    Clock::time_point begun;
    const UniqueFd control; // pi-agent-exec's socket
    ScratchSweep leftovers; // of other sessions
    ShownHome home;         // what is shown of the caller's
    const Synced synced;
};

// --- Sixth: what the user is told, their terminal, and what pi-agent-exec will get.

// Only of a session whose configuration was brought in.
struct Presented {
    Presented(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, Launched &launched);

    UniqueFd terminal; // the agent's end of the session's pty, if it has one
    const LaunchRecord launch;
    std::optional<Child> modes; // gives directories the set-gid bit while the session lives
};

} // namespace pi_agent
