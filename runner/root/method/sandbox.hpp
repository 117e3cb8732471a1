// One way to run the session's launcher (pi-agent-exec) confined: what every method offers the runner. Each method is one file
// (runner/sandbox_*.cpp); runner/root/method/sandbox_methods.cpp alone chooses.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/limits.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/wire/launch_record.hpp"

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

// best_effort, of what is only told and recorded: a look that fails ends no session, and takes no exit status away.
template <typename Look>
auto if_it_can_be_read(const Look &look) -> decltype(look())
{
    try {
        return look();
    } catch (const Failure &) {
        return {};
    }
}

class Sandbox {
public:
    Sandbox() = default;
    Sandbox(const Sandbox &) = delete;
    Sandbox &operator=(const Sandbox &) = delete;
    Sandbox(Sandbox &&) = delete;
    Sandbox &operator=(Sandbox &&) = delete;
    virtual ~Sandbox() = default;

    // Out of the caller's control group, where the caller could freeze or kill this process (design rule 8). Throws Failure(unavailable),
    // also for a host on which the method cannot work at all. Where that takes a while, `meanwhile` is run in it: the caller may still
    // freeze or kill this process there.
    virtual void leave_callers_group(const std::function<void()> &meanwhile) = 0;

    // Begins to build it; `launcher` becomes the standard input of pi-agent-exec (borrowed). Once.
    virtual void start(const SandboxPlan &plan, FdRef launcher) = 0;
    // Asks for the end of all of it, at once; a session that is gone is fine.
    virtual void stop() = 0;
    // The same by the kernel alone, for when nobody else may answer any more. Throws.
    virtual void kill() = 0;
    virtual SandboxResult result() = 0;

    // For poll(2): wait for input on fd until next_look(), then call process().
    [[nodiscard]] virtual FdRef fd() const = 0;
    [[nodiscard]] virtual Deadline next_look(Deadline otherwise) const = 0;
    virtual void process() = 0;

    // What it has used until now, also after its end. What neither kernel nor method tells is left out.
    virtual UnitUsage usage() = 0;

    // Once the launcher is there, and before it has started anything. Throws Failure when there is none of its own.
    virtual UniqueFd mount_namespace() = 0;
    // What runs in the sandbox now; one that has just ended may be among them.
    virtual std::vector<pid_t> processes() = 0;
    // Throws Failure(unavailable) unless what runs there is in namespaces of its own by the kernel's word, where nothing else makes sure.
    virtual void require_confined() = 0;
    // Throws Failure(unavailable) unless the kernel says that the plan's network is in force.
    virtual void require_network_enforced(const NetworkPolicy &network) = 0;
    // The same for what the policy says of limits. What the kernel counted of them while anything of the session is there; and whether
    // there are any, the defaults among them, once it is started.
    virtual void require_limits_enforced(const LimitsPolicy &limits) = 0;
    virtual LimitEvents limit_events() = 0;
    [[nodiscard]] virtual bool has_limits() const = 0;

    // Whether something of this session's may still run in it; and of another session, whose runner is gone.
    virtual bool is_there() = 0;
    virtual bool may_live(const std::string &session_id) = 0;

    // For messages: what is being built ("the session's unit pi-agent-….service"), why it did not come about, and where to read more
    // ("; see: journalctl -u …", or nothing).
    [[nodiscard]] virtual std::string name() const = 0;
    virtual std::string explain(const SandboxResult &result) = 0;
    [[nodiscard]] virtual std::string where_to_look() const = 0;

    // The kinds of namespaces (namespaces(7): "mnt", "pid", …) of which a session of this plan gets its own.
    [[nodiscard]] virtual std::vector<std::string> own_namespaces(const NetworkPolicy &network) const = 0;
    // Whether processes there can name other accounts and groups of the host in an access control list, if only to copy one.
    [[nodiscard]] virtual bool knows_other_ids(const Account & /*agent*/) const { return true; }
    // Files of the view's /etc that come from the method itself, and from nowhere else.
    [[nodiscard]] virtual std::vector<std::string> own_files() const { return {}; }
    // What pi-agent-exec is to bring beside. None: nothing but the agent's account keeps it from the host.
    [[nodiscard]] virtual Restrictions restrictions() const = 0;
    [[nodiscard]] bool confines() const { return restrictions() != Restrictions::none; }
};

} // namespace pi_agent
