// sandbox.method bwrap: bubblewrap, for hosts where systemd is not PID 1 (containers, WSL, chroots).
#pragma once

#include "common/host/identity.hpp"
#include "runner/root/method/own_group.hpp"
#include "runner/root/method/sandbox.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// All of a session lives in a PID namespace whose first process is bwrap's: its end is the end of all of them (pid_namespaces(7)). It ends
// with bwrap, and bwrap with this process (PR_SET_PDEATHSIG(2const)).
class BwrapSandbox final : public Sandbox {
public:
    // Borrows root. Throws Failure(unavailable) when this host has no usable bwrap.
    BwrapSandbox(const AsRoot &root, std::string session_id, Uid user);
    BwrapSandbox(const BwrapSandbox &) = delete;
    BwrapSandbox &operator=(const BwrapSandbox &) = delete;
    BwrapSandbox(BwrapSandbox &&) = delete;
    BwrapSandbox &operator=(BwrapSandbox &&) = delete;
    ~BwrapSandbox() override;

    void leave_callers_group(const std::function<void()> &meanwhile) override;
    void start(const SandboxPlan &plan, FdRef launcher) override;
    void stop() override;
    void kill() override { stop(); }
    SandboxResult result() override;
    [[nodiscard]] FdRef fd() const override { return events_; }
    [[nodiscard]] Deadline next_look(Deadline otherwise) const override;
    void process() override;
    UnitUsage usage() override;
    UniqueFd mount_namespace() override;
    std::vector<pid_t> processes() override;
    void require_confined() override;
    void require_network_enforced(const NetworkPolicy &network) override;
    void require_limits_enforced(const LimitsPolicy &limits) override;
    LimitEvents limit_events() override;
    [[nodiscard]] bool has_limits() const override;
    bool is_there() override;
    bool may_live(const std::string &session_id) override;
    [[nodiscard]] std::string name() const override;
    std::string explain(const SandboxResult &result) override;
    [[nodiscard]] std::string where_to_look() const override { return ""; }
    [[nodiscard]] std::vector<std::string> own_namespaces(const NetworkPolicy &network) const override;
    [[nodiscard]] Restrictions restrictions() const override { return Restrictions::all; }

private:
    void watch(FdRef fd);
    void wait_for_info(Deadline deadline);
    void hear_info();
    void hear_complaint();
    void hear_end();
    void look_at_the_time();
    [[nodiscard]] std::optional<ControlGroup> agents_group() const { return group_ ? group_->group() : std::nullopt; }

    const AsRoot &root_;
    std::string id_;
    Uid user_;
    std::optional<OwnGroup> group_;
    UniqueFd events_; // epoll of the four below
    UniqueFd info_;
    UniqueFd complaint_; // bwrap's standard error
    UniqueFd bwrap_;     // pidfd
    UniqueFd first_;     // pidfd of the first process inside
    pid_t bwrap_pid_ = -1;
    pid_t first_pid_ = -1;
    std::string said_; // on info_
    std::string complained_;
    bool reaped_ = false;
    std::optional<Deadline> until_; // limits.runtime
    bool timed_out_ = false;
    int status_ = 0;
    UniqueFd keeper_; // what is left to it when this process is killed: runner/root/method/session_keeper.hpp
};

} // namespace pi_agent
