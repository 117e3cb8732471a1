// sandbox.method systemd: a hardened transient unit, bound to a scope that holds the runner.
#pragma once

#include "common/identity.hpp"
#include "runner/own_scope.hpp"
#include "runner/sandbox.hpp"
#include "runner/systemd_bus.hpp"
#include "runner/systemd_features.hpp"

#include <optional>
#include <string>

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

    void begin_leaving_callers_group() override;
    void leave_callers_group() override;
    void start(const SandboxPlan &plan, FdRef launcher) override;
    void stop() override;
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
    bool is_there() override;
    bool may_live(const std::string &session_id) override;
    [[nodiscard]] std::string name() const override;
    std::string explain(const SandboxResult &result) override;
    [[nodiscard]] std::string where_to_look() const override;
    [[nodiscard]] std::vector<std::string> own_namespaces(const NetworkPolicy &network) const override;
    [[nodiscard]] bool needs_call_filter() const override { return false; }

private:
    const AsRoot &root_;
    std::string id_;
    Uid user_;
    SystemdBus bus_;
    SystemdFeatures features_{};
    std::optional<MoveIntoScope> move_; // after the bus: what fails meanwhile waits for it
};

} // namespace pi_agent
