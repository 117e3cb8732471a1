// Running bubblewrap as root, and knowing when everything in it is over.
#include "runner/root/method/sandbox_bwrap.hpp"

#include "common/base/error.hpp"
#include "common/base/process.hpp"
#include "common/base/text.hpp"
#include "common/host/namespaces.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/kernel/limit_controllers.hpp"
#include "runner/root/kernel/network_check.hpp"
#include "runner/root/method/method_program.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/method/preflight.hpp"
#include "runner/root/method/session_keeper.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/session/session_list.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::size_t bwrap_text_limit = 4096; // of what bwrap says
constexpr int end_patience_seconds = 15;
constexpr int info_patience_seconds = 5;

pid_t parent_of(pid_t pid)
{
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.compare(0, 6, "PPid:\t") == 0) return static_cast<pid_t>(std::strtol(line.c_str() + 6, nullptr, 10));
    return -1;
}

} // namespace

BwrapSandbox::BwrapSandbox(const AsRoot &root, std::string session_id, Uid user) : root_(root), id_(std::move(session_id)), user_(user)
{
    require_bwrap(root);
    events_ = UniqueFd::adopt(epoll_create1(EPOLL_CLOEXEC));
    if (!events_) throw_errno("watching the sandbox");
}

BwrapSandbox::~BwrapSandbox()
{
    try {
        if (is_there()) stop();
        const Deadline deadline = in_seconds(end_patience_seconds);
        while (is_there() && Clock::now() < deadline)
            wait_for_input(events_, deadline);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the end of this process ends it, too
    }
    try { // while something is left, it is the keeper's: this end is the runner's, too
        if (keeper_ && !session_exists(root_, id_)) static_cast<void>(write(keeper_.get(), "x", 1) == 1);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): then the keeper looks
    }
}

void BwrapSandbox::leave_callers_group(const std::function<void()> &meanwhile)
{
    group_.emplace(root_, id_, user_);
    meanwhile();
}

void BwrapSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    keeper_ = start_session_keeper(root_, id_);
    if (const auto group = agents_group()) limit_group(root_, group->path, plan.limits);
    if (plan.limits.runtime) until_ = Clock::now() + std::chrono::seconds(plan.limits.runtime->amount);
    auto [info, their_info] = make_pipe(O_NONBLOCK);
    auto [complaint, their_complaint] = make_pipe(O_NONBLOCK);
    bwrap_pid_ = run_bwrap(root_, plan, group_ ? group_->agents() : FdRef(-1), {launcher, their_complaint, their_info});
    bwrap_ = open_process(bwrap_pid_);
    if (!bwrap_) throw_errno("watching bwrap");
    info_ = std::move(info);
    complaint_ = std::move(complaint);
    for (const FdRef fd : {FdRef(bwrap_), FdRef(info_), FdRef(complaint_)})
        watch(fd);
}

void BwrapSandbox::stop()
{
    // The first process inside waits for bwrap's word before it is bound to bwrap's life: it has to be known first.
    wait_for_info(in_seconds(info_patience_seconds));
    const FdRef victim = first_ ? FdRef(first_) : FdRef(bwrap_);
    if (victim.get() >= 0) signal_process(victim, SIGKILL, "ending the session");
    if (group_) group_->kill_agents();
}

SandboxResult BwrapSandbox::result()
{
    if (!reaped_ || (first_ && !has_ended(first_))) return {false, "", 0, 0};
    if (timed_out_) return {true, "timeout", CLD_KILLED, SIGKILL};
    if (WIFSIGNALED(status_)) return {true, "signal", CLD_KILLED, WTERMSIG(status_)};
    const int status = WEXITSTATUS(status_);
    return {true, status == 0 ? "success" : "exit-code", CLD_EXITED, status};
}

void BwrapSandbox::process()
{
    if (!bwrap_) return;
    hear_info();
    hear_complaint();
    hear_end();
    look_at_the_time();
}

Deadline BwrapSandbox::next_look(Deadline otherwise) const
{
    return until_ ? std::min(otherwise, *until_) : otherwise;
}

// Nothing where it has no control group of its own.
UnitUsage BwrapSandbox::usage()
{
    const auto group = agents_group();
    return group ? if_it_can_be_read([&] { return usage_of(*group); }) : UnitUsage{};
}

UniqueFd BwrapSandbox::mount_namespace()
{
    wait_for_info(in_seconds(info_patience_seconds));
    UniqueFd found = UniqueFd::adopt(open(("/proc/" + std::to_string(first_pid_) + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
    if (!first_ || !found || has_ended(first_)) throw Failure(ExitStatus::unavailable, "bwrap made no mount namespace for the session");
    return found;
}

void BwrapSandbox::require_confined()
{
    if (!defence_is_on("bwrap:require-confined")) return;
    mount_namespace();
    for (const char *kind : {"mnt", "pid", "ipc"}) {
        const auto host = namespace_of("1", kind);
        if (!host) throw_errno("reading the host's namespaces");
        const auto inside = namespace_of(std::to_string(first_pid_), kind);
        if (!inside || inside == host)
            throw Failure(ExitStatus::unavailable, std::string("bwrap made no namespace of its own for the session (") + kind + ")");
    }
}

// Of its first process: before the agent all others are that one's children, in the same namespaces.
std::vector<pid_t> BwrapSandbox::processes()
{
    hear_info();
    return first_ ? std::vector<pid_t>{first_pid_} : std::vector<pid_t>{};
}

void BwrapSandbox::require_network_enforced(const NetworkPolicy &network)
{
    if (network.mode == NetworkMode::none) require_own_network(processes(), network);
}

void BwrapSandbox::require_limits_enforced(const LimitsPolicy &limits)
{
    const auto said = first_for_group(limits);
    if (!said || !defence_is_on("limits-check")) return;
    const auto group = agents_group();
    if (!group)
        throw Failure(ExitStatus::unavailable, "this host cannot enforce the policy's " + to_string(*said) + ": " + control_groups +
                                                   " is no hierarchy of version 2 that root can write, and with sandbox.method bwrap the "
                                                   "session's control group is made there; or leave the key out of the policy");
    require_limits_in(*group, limits,
                      "is it handed to this container, and is the container's first group without processes of its own (cgroups(7))?");
}

bool BwrapSandbox::has_limits() const
{
    const auto group = agents_group();
    return group && access((group->path + "/pids.max").c_str(), F_OK) == 0;
}

LimitEvents BwrapSandbox::limit_events()
{
    const auto group = agents_group();
    return group ? if_it_can_be_read([&] { return read_limit_events(*group); }) : LimitEvents{};
}

bool BwrapSandbox::is_there()
{
    process();
    return bwrap_ && !result().ended;
}

// The kernel ends it with its runner, which may have given up the session's lock while it removes it.
bool BwrapSandbox::may_live(const std::string &session_id)
{
    return has_living_runner(session_id) && defence_is_on("bwrap:one-remover");
}

std::string BwrapSandbox::name() const
{
    return "the session's sandbox (bwrap, process " + std::to_string(bwrap_pid_) + ")";
}

std::string BwrapSandbox::explain(const SandboxResult &result)
{
    hear_complaint();
    return "bwrap could not prepare the sandbox (" +
           (complained_.empty() ? "status " + std::to_string(result.status) : escape_for_display(complained_)) + ")";
}

std::vector<std::string> BwrapSandbox::own_namespaces(const NetworkPolicy &network) const
{
    std::vector<std::string> kinds = {"mnt", "ipc", "uts", "pid"};
    if (network.mode == NetworkMode::none) kinds.emplace_back("net");
    return kinds;
}

// All of it at once, as systemd does.
void BwrapSandbox::look_at_the_time()
{
    if (reaped_) until_.reset(); // it ends already
    if (!until_ || Clock::now() < *until_) return;
    until_.reset();
    timed_out_ = true;
    stop();
}

void BwrapSandbox::watch(FdRef fd)
{
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) throw_errno("watching the sandbox");
}

void BwrapSandbox::wait_for_info(Deadline deadline)
{
    for (hear_info(); !first_ && info_ && Clock::now() < deadline; hear_info())
        wait_for_input(info_, deadline);
}

void BwrapSandbox::hear_info()
{
    if (!info_) return;
    std::array<char, 256> buffer{};
    ssize_t length = 0;
    while ((length = read(info_.get(), buffer.data(), buffer.size())) > 0 && said_.size() < bwrap_text_limit)
        said_.append(buffer.data(), static_cast<std::size_t>(length));
    const auto facts = nlohmann::json::parse(said_, nullptr, false);
    const auto pid = facts.is_object() ? facts.value("child-pid", 0) : 0;
    if (pid > 0 && !first_) {
        UniqueFd process = open_process(pid);
        // bwrap reaps it: whoever has that number and bwrap as a parent, now that it is held, is the one that was meant.
        if (process && parent_of(pid) == bwrap_pid_) {
            first_ = std::move(process);
            first_pid_ = pid;
            watch(first_);
        }
    }
    if (length == 0 || pid > 0) info_.reset();
}

void BwrapSandbox::hear_complaint()
{
    if (!complaint_) return;
    std::array<char, 256> buffer{};
    ssize_t length = 0;
    while ((length = read(complaint_.get(), buffer.data(), buffer.size())) > 0)
        if (complained_.size() < bwrap_text_limit) complained_.append(buffer.data(), static_cast<std::size_t>(length));
    if (length == 0) complaint_.reset();
    while (!complained_.empty() && complained_.back() == '\n')
        complained_.pop_back();
}

void BwrapSandbox::hear_end()
{
    if (reaped_) return;
    const pid_t reaped = waitpid(bwrap_pid_, &status_, WNOHANG);
    if (reaped < 0 && errno != EINTR) throw_errno("waiting for bwrap");
    if (reaped != bwrap_pid_) return;
    reaped_ = true;
    if (epoll_ctl(events_.get(), EPOLL_CTL_DEL, bwrap_.get(), nullptr) != 0) throw_errno("watching the sandbox");
    // What bwrap's end did not end yet.
    if (first_) signal_process(first_, SIGKILL, "ending the session");
}

} // namespace pi_agent
