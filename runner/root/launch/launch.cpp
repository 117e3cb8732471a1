// The phases of one session. Each takes what those before it are, and nothing else makes it; what they hold ends backwards.
#include "runner/root/launch/phases.hpp"

#include "common/seams/seams.hpp"

namespace pi_agent {

namespace {

// Root gives up what it does not need to the end, the agent starts, and runs.
AgentEnded run_agent(Entered &entered, Heard &heard, OpenedSession &session, BuiltView &view, Launched &launched, Presented &presented,
                     PlaceholderRemoval &placeholders, LimitEvents &reached)
{
    Sandbox &sandbox = *entered.sandbox;
    const auto hand_over = [&](FdRef pty) {
        entered.to_wrapper.tell(SessionBegun{entered.id});
        hand_record_over(entered.root, entered.policy, entered.environment, presented.launch, launched.control, pty,
                         presented.modes ? presented.modes->channel() : FdRef(-1));
    };
    std::optional<GateWatch> gate;
    if (launched.gate)
        gate.emplace(entered.id, launched.gate->channel(), launched.gate->said(), entered.record, std::move(launched.denials),
                     denial_places(entered.policy.network, routed_providers(entered.policy)), [&asked = *launched.gate] { asked.kill(); });
    const auto before_agent = [&] {
        sandbox.require_enforced(entered.policy);
        if (launched.gate) open_gate(entered, *launched.gate);
        if (!view.tree.late.empty()) attach_late(entered.root, sandbox.namespace_of_launcher("mnt"), view.tree.late);
        if (heard.guards.has_inner()) heard.guards.apply_inside(entered.root, sandbox.namespace_of_launcher("mnt"), session.project_path);
        confine_root(entered.root);
        // --- confined root from here: what is left is to watch, to end and to remove ---
        if (gate) gate->expect_life();
    };
    const auto after_agent = [&] {
        entered.record.take_usage(sandbox.usage());
        reached = sandbox.limit_events();
    };
    return session.ending.run_recorded([&] {
        const Session watched{entered.wrapper,
                              entered.to_wrapper,
                              heard.receiver,
                              launched.control,
                              entered.termination,
                              FdRef(defence_is_on("job-end") ? heard.job.get() : -1),
                              hand_over,
                              session.early.messages(),
                              before_agent,
                              after_agent,
                              [&] { placeholders.begin(); },
                              gate ? &*gate : nullptr};
        entered.begin("waiting for " + sandbox.facts().name);
        const AgentEnded seen = supervise(sandbox, watched, std::move(presented.terminal));
        session.ending.sandbox_has_ended();
        const std::string denied = gate ? gate->finish() : "";
        if (!denied.empty() && heard.request.program != Program::canary) entered.tell({denied}); // that one asks to be denied
        release_scratch(view.scratch);
        return seen;
    });
}

// The session counts as a start until everything that it left is gone.
void become_a_start(Entered &entered, const OpenedSession &session)
{
    try {
        entered.slot = take_start_slot(entered.root, entered.caller.uid);
        session.directory.unlock();
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): all slots taken: it still counts as a session until then
    }
}

void finish(Entered &entered, OpenedSession &session, BuiltView &view, Launched &launched, const AgentEnded &ended,
            PlaceholderRemoval &placeholders, const LimitEvents &reached)
{
    become_a_start(entered, session);
    for (const auto &notice : {nearly_full(session.state.home, session.state.home_path), nearly_full(view.scratch, "the session's /tmp")})
        if (notice) entered.tell({*notice});
    entered.tell(limit_notices(entered.policy.limits, reached, ended, entered.sandbox->result().result, Clock::now() - launched.begun));
    // Restore the user's repository before the user hears of the end: git stops where a commondir disappears while it looks.
    release_project(entered.root, view.tree);
    placeholders.finish(in_seconds(1));
    entered.to_wrapper.tell(ended);                               // nobody waits for the removal of the rest
    if (!session.ending.was_asked()) launched.leftovers.finish(); // otherwise the administrator waits for the end of all of it
}

} // namespace

void run_session(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record)
{
    try {
        Entered entered(root, caller, wrapper, record);
        entered.begin("hearing what is asked for");
        Heard heard(entered);
        entered.begin("opening the agent's home and state");
        OpenedSession session(entered, heard);
        entered.begin("building what the session sees");
        std::unique_ptr<SessionGate> gate = ask_for_gate(entered, session);
        BuiltView view(entered, heard, session);
        Launched launched(entered, heard, session, view, std::move(gate));
        Presented presented(entered, heard, session, view, launched);
        PlaceholderRemoval placeholders(root, entered.id, session.directory.fd());
        LimitEvents reached;
        const AgentEnded ended = run_agent(entered, heard, session, view, launched, presented, placeholders, reached);
        finish(entered, session, view, launched, ended, placeholders, reached);
    } catch (const EndedBySignal &asked) {
        record.failed(ExitStatus::system_failure, "ended by a signal before the agent was started");
        ToWrapper(wrapper).tell(AgentEnded{true, asked.number});
    }
}

} // namespace pi_agent
