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
    // Throws Failure(unavailable) when this host has no usable bwrap.
    BwrapSandbox(const AsRoot &root, std::string session_id, Uid user);
    BwrapSandbox(const BwrapSandbox &) = delete;
    BwrapSandbox &operator=(const BwrapSandbox &) = delete;
    ~BwrapSandbox() override;

    void leave_callers_group(const std::function<void()> &meanwhile) override;
    void start(const SandboxPlan &plan, FdRef launcher) override;
    void stop() override;
    void kill() override { stop(); }
    SandboxResult result() override;
    [[nodiscard]] Deadline next_look(Deadline otherwise) const override;
    void process() override;
    UniqueFd mount_namespace() override;
    std::vector<pid_t> processes() override;
    bool is_there() override;
    bool may_live(const std::string &session_id) override;
    [[nodiscard]] std::string name() const override;
    std::string explain(const SandboxResult &result) override;

protected:
    [[nodiscard]] std::optional<ControlGroup> group() const override { return group_ ? group_->group() : std::nullopt; }
    void require_confined() override;

private:
    void wait_for_info(Deadline deadline);
    void hear_info();
    void hear_end();
    void look_at_the_time();

    std::optional<OwnGroup> group_;
    Overheard info_;
    Overheard complaint_; // bwrap's standard error
    UniqueFd bwrap_;      // pidfd
    UniqueFd first_;      // pidfd of the first process inside
    pid_t bwrap_pid_ = -1;
    pid_t first_pid_ = -1;
    bool reaped_ = false;
    std::optional<Deadline> until_; // limits.runtime
    bool timed_out_ = false;
    int status_ = 0;
    UniqueFd keeper_; // what is left to it when this process is killed: method_program.hpp
};

} // namespace pi_agent
