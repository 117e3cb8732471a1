// sandbox.method systemd: a hardened transient unit, bound to a scope that holds the runner.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/limits.hpp"
#include "runner/plan/unit_properties.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/method/systemd_bus.hpp"

#include <string>
#include <vector>

namespace pi_agent {

class SystemdSandbox : public Sandbox {
public:
    // Borrows root. Throws Failure(unavailable) when systemd does not answer.
    SystemdSandbox(const AsRoot &root, std::string session_id, Uid user);
    SystemdSandbox(const SystemdSandbox &) = delete;
    SystemdSandbox &operator=(const SystemdSandbox &) = delete;
    SystemdSandbox(SystemdSandbox &&) = delete;
    SystemdSandbox &operator=(SystemdSandbox &&) = delete;
    ~SystemdSandbox() override = default;

    void leave_callers_group(const std::function<void()> &meanwhile) override;
    void start(const SandboxPlan &plan, FdRef launcher) override;
    void stop() override;
    void kill() override;
    SandboxResult result() override;
    [[nodiscard]] FdRef fd() const override;
    [[nodiscard]] Deadline next_look(Deadline otherwise) const override;
    void process() override;
    UnitUsage usage() override;
    UniqueFd mount_namespace() override;
    std::vector<pid_t> processes() override;
    void require_confined() override {} // where systemd cannot change a unit's root, the unit fails
    void require_network_enforced(const NetworkPolicy &network) override;
    void require_limits_enforced(const LimitsPolicy &limits) override;
    LimitEvents limit_events() override;
    [[nodiscard]] bool has_limits() const override { return true; }
    bool is_there() override;
    bool may_live(const std::string &session_id) override;
    [[nodiscard]] std::string name() const override;
    std::string explain(const SandboxResult &result) override;
    [[nodiscard]] std::string where_to_look() const override;
    [[nodiscard]] std::vector<std::string> own_namespaces(const NetworkPolicy &network) const override;
    [[nodiscard]] bool knows_other_ids(const Account &agent) const override;
    [[nodiscard]] Restrictions restrictions() const override { return Restrictions::beside_unit; }

protected:
    // Starts the session's unit with these as its standard descriptors; those that are none are /dev/null.
    void start_unit(const SandboxPlan &plan, const ServiceStreams &streams);
    // The agent's unit.
    [[nodiscard]] virtual std::vector<UnitProperty> properties(const SandboxPlan &plan, const SystemdFeatures &features) const;

private:
    const AsRoot &root_;
    std::string id_;
    Uid user_;
    SystemdBus bus_;
    SystemdFeatures features_{};
    bool was_taken_in_ = false; // systemd has answered that it starts the session's unit
};

} // namespace pi_agent
