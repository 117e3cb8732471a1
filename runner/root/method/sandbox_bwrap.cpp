// Runs bubblewrap as root, and knows when everything in it has ended.
#include "runner/root/method/sandbox_methods.hpp"

#include "common/base/process.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/session/session_directory.hpp"

#include <csignal>
#include <fstream>
#include <sys/wait.h>

namespace pi_agent {

namespace {

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

BwrapSandbox::BwrapSandbox(const AsRoot &root, std::string session_id, Uid user)
    : Sandbox(root, SandboxMethod::bwrap, std::move(session_id), user)
{
    require_bwrap(root);
}

BwrapSandbox::~BwrapSandbox()
{
    try {
        if (is_there()) stop();
        const Deadline deadline = in_seconds(end_patience_seconds);
        while (is_there() && Clock::now() < deadline)
            wait_for_input(fd(), deadline);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the end of this process ends it, too
    }
    try { // while something is left, the keeper looks after it: this end is the runner's, too
        if (keeper_ && !session_exists(root(), id())) static_cast<void>(write(keeper_.get(), "x", 1) == 1);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): then the keeper does it
    }
}

void BwrapSandbox::leave_callers_group(const std::function<void()> &meanwhile)
{
    group_.emplace(root(), id(), user());
    meanwhile();
}

void BwrapSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    keeper_ = start_session_keeper(root(), id());
    if (const auto own = group()) limit_group(root(), own->path, plan.limits);
    if (plan.limits.runtime) until_ = Clock::now() + std::chrono::seconds(plan.limits.runtime->amount);
    const UniqueFd info = info_.open();
    const UniqueFd complaint = complaint_.open();
    bwrap_pid_ = run_bwrap(root(), plan, group_ ? group_->agents() : FdRef(-1), {launcher, complaint, info});
    bwrap_ = open_process(bwrap_pid_);
    if (!bwrap_) throw_errno("watching bwrap");
    for (const FdRef source : {FdRef(bwrap_), info_.fd(), complaint_.fd()})
        watch(source);
}

void BwrapSandbox::stop()
{
    // The first process inside waits for bwrap before it is bound to bwrap's life: it must be known first.
    wait_for_info(in_seconds(info_patience_seconds));
    const FdRef victim = first_ ? FdRef(first_) : FdRef(bwrap_);
    if (victim.get() >= 0) signal_process(victim, SIGKILL, "ending the session");
    if (const auto own = group()) kill_group(*own);
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
    complaint_.text();
    hear_end();
    look_at_the_time();
}

Deadline BwrapSandbox::next_look(Deadline otherwise) const
{
    return until_ ? std::min(otherwise, *until_) : otherwise;
}

UniqueFd BwrapSandbox::mount_namespace()
{
    wait_for_info(in_seconds(info_patience_seconds));
    UniqueFd found = UniqueFd::adopt(open(("/proc/" + std::to_string(first_pid_) + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
    if (!first_ || !found || has_ended(first_)) throw Failure(FailureKind::sandbox_method, "bwrap made no mount namespace for the session");
    return found;
}

void BwrapSandbox::require_confined()
{
    if (!defence_is_on("bwrap:require-confined")) return;
    mount_namespace();
    require_own_namespaces({first_pid_}, {"mnt", "pid", "ipc"});
}

// The processes around its first process: before the agent starts, all others are its children, in the same namespaces.
std::vector<pid_t> BwrapSandbox::processes()
{
    hear_info();
    return first_ ? std::vector<pid_t>{first_pid_} : std::vector<pid_t>{};
}

bool BwrapSandbox::is_there()
{
    process();
    return bwrap_ && !result().ended;
}

// The kernel ends it with its runner. The runner may have given up the session's lock while it removes the session.
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
    const std::string &text = complaint_.text();
    return "bwrap could not prepare the sandbox (" + (text.empty() ? "status " + std::to_string(result.status) : escape_for_display(text)) +
           ")";
}

// Ends all of it at once, as systemd does.
void BwrapSandbox::look_at_the_time()
{
    if (reaped_) until_.reset(); // it is ending already
    if (!until_ || Clock::now() < *until_) return;
    until_.reset();
    timed_out_ = true;
    stop();
}

void BwrapSandbox::wait_for_info(Deadline deadline)
{
    for (hear_info(); !first_ && info_ && Clock::now() < deadline; hear_info())
        wait_for_input(info_.fd(), deadline);
}

void BwrapSandbox::hear_info()
{
    if (!info_) return;
    const auto facts = nlohmann::json::parse(info_.text(), nullptr, false);
    const auto pid = facts.is_object() ? facts.value("child-pid", 0) : 0;
    if (pid > 0 && !first_) {
        UniqueFd process = open_process(pid);
        // bwrap reaps it: if the process that is now held has that number and bwrap as its parent, it is the right one.
        if (process && parent_of(pid) == bwrap_pid_) {
            first_ = std::move(process);
            first_pid_ = pid;
            watch(first_);
        }
    }
    if (pid > 0) info_.close();
}

void BwrapSandbox::hear_end()
{
    if (reaped_) return;
    const pid_t reaped = waitpid(bwrap_pid_, &status_, WNOHANG);
    if (reaped < 0 && errno != EINTR) throw_errno("waiting for bwrap");
    if (reaped != bwrap_pid_) return;
    reaped_ = true;
    forget(bwrap_);
    // Ends what did not end with bwrap.
    if (first_) signal_process(first_, SIGKILL, "ending the session");
}

} // namespace pi_agent
