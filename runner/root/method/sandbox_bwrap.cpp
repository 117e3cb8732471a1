// sandbox.method bwrap: runs bubblewrap as root, and knows when everything in it has ended.
#include "common/base/build_settings.hpp"

#include "runner/root/method/sandbox.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"

#include <fmt/ranges.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

namespace pi_agent {

namespace {

constexpr int end_patience_seconds = 15;
constexpr int info_patience_seconds = 5;
constexpr std::uint64_t cpu_period_usec = 100'000;
constexpr int arguments_fd = 3; // inside bwrap
constexpr int info_fd = 4;
constexpr int group_fd = 5; // until bwrap has entered it
char *const no_environment[] = {nullptr};

// Root needs them to build the view out of mounts, to make files that the agent owns, and to become its account without any.
constexpr std::array<std::pair<int, std::string_view>, 8> needed = {{{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
                                                                     {CAP_CHOWN, "CAP_CHOWN"},
                                                                     {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                                                                     {CAP_FOWNER, "CAP_FOWNER"},
                                                                     {CAP_KILL, "CAP_KILL"},
                                                                     {CAP_SETGID, "CAP_SETGID"},
                                                                     {CAP_SETUID, "CAP_SETUID"},
                                                                     {CAP_SETPCAP, "CAP_SETPCAP"}}};

bool has_capability(int capability)
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
    if (syscall(SYS_capget, &header, data.data()) != 0) throw_errno("reading the own capabilities");
    return (data[0].effective & (1U << static_cast<unsigned>(capability))) != 0; // those in question are all among the first 32
}

pid_t parent_of(pid_t pid)
{
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.compare(0, 6, "PPid:\t") == 0) return static_cast<pid_t>(std::strtol(line.c_str() + 6, nullptr, 10));
    return -1;
}

void write_to(const std::string &file, const std::string &text)
{
    std::ofstream(file) << text << std::flush;
}

// Hands the controllers down to `group` (of version 2: cgroups(7)), level by level from the mounted hierarchy, and writes memory, tasks and
// cpu there: the policy's limits, and the defaults. best_effort: the policy's limits are checked against the kernel afterwards
// (runner/root/kernel/host_facts.hpp), and a default holds where it can.
void limit_group(const std::string &group, const LimitsPolicy &limits)
{
    // One at a time: a write of several is refused when one of them is missing.
    for (std::size_t slash = std::string(control_groups).size(); slash != std::string::npos; slash = group.find('/', slash + 1))
        for (const char *controller : {"+memory", "+pids", "+cpu"})
            write_to(group.substr(0, slash) + "/cgroup.subtree_control", controller);
    write_to(group + "/memory.max",
             std::to_string(limits.memory ? limits.memory->amount : host_memory() / 100 * in_force(limits, &LimitsPolicy::memory_share)));
    if (limits.memory || limits.memory_share) write_to(group + "/memory.swap.max", "0"); // as of a unit: runner/plan/unit_properties.cpp
    write_to(group + "/pids.max", std::to_string(in_force(limits, &LimitsPolicy::tasks)));
    if (limits.cpu)
        write_to(group + "/cpu.max", std::to_string(limits.cpu->amount * (cpu_period_usec / 100)) + " " + std::to_string(cpu_period_usec));
}

// Raises it to the agent's, unless the runner's is as high: in a container that the kernel kills before others, nobody may lower it.
bool raise_oom_score()
{
    const UniqueFd file = UniqueFd::adopt(open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
    std::array<char, 16> own{};
    if (!file || read(file.get(), own.data(), own.size() - 1) <= 0) return false;
    if (std::strtol(own.data(), nullptr, 10) >= agent_oom_score) return true;
    const std::string score = std::to_string(agent_oom_score);
    return pwrite(file.get(), score.data(), score.size(), 0) == static_cast<ssize_t>(score.size());
}

// Runs in the forked child: closes all but what bwrap needs, and drops what it would inherit from the caller.
[[noreturn]] void become_bwrap(pid_t parent, const std::vector<int> &descriptors, bool in_group, const std::vector<char *> &arguments)
{
    const auto fail = [](const char *step) {
        const std::string text = std::string(step) + ": " + SystemFailure(errno, "bwrap").what() + "\n";
        static_cast<void>(write(STDERR_FILENO, text.data(), text.size()) > 0);
        _exit(static_cast<int>(ExitStatus::unavailable));
    };
    if (!place_descriptors(descriptors)) _exit(static_cast<int>(ExitStatus::system_failure));
    if (in_group && enter_group(FdRef(group_fd)) != 0) fail("entering the agent's control group");
    if (close_range(group_fd, ~0U, 0) != 0) fail("closing descriptors");
    if (defence_is_on("bwrap:die-with-parent") && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        fail("asking for the parent-death signal");
    if (getppid() != parent) _exit(static_cast<int>(ExitStatus::system_failure));
    if (!raise_oom_score()) fail("setting oom_score_adj");
    // The caller's session keyring came along through sudo (session-keyring(7)).
    errno = defence_is_on("bwrap:own-keyring") ? leave_session_keyring() : 0;
    if (errno != 0) fail("taking a keyring of its own");
    signal(SIGPIPE, SIG_DFL);
    if (!unblock_signals()) fail("unblocking signals");
    execve(build::bwrap_path, arguments.data(), no_environment);
    fail("running bwrap");
    _exit(static_cast<int>(ExitStatus::unavailable));
}

// Forks twice, so that nobody has to wait for it. Also closes the session's lock, which must end with the runner.
[[noreturn]] void become_keeper(const std::vector<char *> &arguments, int end_of_runner)
{
    if (dup2(end_of_runner, STDIN_FILENO) < 0 || close_range(3, ~0U, 0) != 0) _exit(1);
    if (const pid_t pid = fork(); pid != 0) _exit(pid < 0 ? 1 : 0);
    setsid();
    unblock_signals();
    execve(build::cleanup_path, arguments.data(), no_environment);
    _exit(1);
}

// With an environment that takes nothing from the caller, and bound to this process. `group`: the control group to start in, or none.
// bwrap writes the number of its first process inside to `info`, as JSON. Returns the number of its own; it is killed when this process
// ends.
pid_t run_bwrap(const AsRoot &root, const SandboxPlan &plan, FdRef group, FdRef launcher, FdRef complaint, FdRef info)
{
    require_bwrap_network(root, plan.network);
    const UniqueFd arguments_file = write_arguments("bwrap", bwrap_options(plan, info_fd)); // every user could read its argv
    std::vector<std::string> arguments = {"bwrap", "--args", std::to_string(arguments_fd), "--"};
    const std::vector<std::string> command = bwrap_command(plan);
    arguments.insert(arguments.end(), command.begin(), command.end());
    const std::vector<char *> pointers = exec_pointers(arguments);
    const UniqueFd null = open_or_throw("opening /dev/null", "/dev/null", O_RDWR);
    std::vector<int> fds = {launcher.get(), null.get(), complaint.get(), arguments_file.get(), info.get()};
    const bool in_group = group.get() >= 0;
    if (in_group) fds.push_back(group.get());
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw_errno("starting bwrap");
    if (pid == 0) become_bwrap(parent, fds, in_group, pointers);
    return pid;
}

// Starts pi-agent-cleanup --when-runner-ends, which outlives the runner where no systemd does: it removes what a session left whose runner
// was killed. That program has another name than the runner, so that killing the runner by its name does not kill it. It waits while the
// returned descriptor is open. A byte written there dismisses it. When this process ends without one, it removes the session.
UniqueFd start_session_keeper(const std::string &session_id)
{
    auto [theirs, own] = make_pipe();
    const std::vector<std::string> arguments = {build::cleanup_path, "--when-runner-ends", session_id};
    const std::vector<char *> pointers = exec_pointers(arguments);
    const pid_t pid = fork();
    if (pid < 0) throw_errno("starting the session's keeper");
    if (pid == 0) become_keeper(pointers, theirs.get());
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) throw Failure(ExitStatus::system_failure, "the session's keeper could not be started");
    return std::move(own); // cppcheck-suppress returnStdMoveLocal ; it is a part of a pipe
}

// All of a session runs in a PID namespace whose first process is bwrap's: when that ends, all of them end (pid_namespaces(7)). It ends
// with bwrap, and bwrap ends with this process (PR_SET_PDEATHSIG(2const)).
class BwrapSandbox final : public Sandbox {
public:
    BwrapSandbox(const AsRoot &root, std::string session_id, Uid user) : Sandbox(root, SandboxMethod::bwrap, std::move(session_id), user)
    {
        require_bwrap(root);
    }

    BwrapSandbox(const BwrapSandbox &) = delete;
    BwrapSandbox &operator=(const BwrapSandbox &) = delete;

    ~BwrapSandbox() override
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

    void leave_callers_group(const std::function<void()> &meanwhile) override
    {
        group_.emplace(root(), id(), user());
        meanwhile();
    }

    void start(const SandboxPlan &plan, FdRef launcher) override
    {
        keeper_ = start_session_keeper(id());
        if (const auto own = group()) limit_group(own->path, plan.limits);
        if (plan.limits.runtime) due_ = Clock::now() + std::chrono::seconds(plan.limits.runtime->amount);
        const UniqueFd info = info_.open();
        const UniqueFd complaint = complaint_.open();
        bwrap_pid_ = run_bwrap(root(), plan, group_ ? group_->agents() : FdRef(-1), launcher, complaint, info);
        bwrap_ = open_process(bwrap_pid_);
        if (!bwrap_) throw_errno("watching bwrap");
        facts_.name = "the session's sandbox (bwrap, process " + std::to_string(bwrap_pid_) + ")";
        for (const FdRef source : {FdRef(bwrap_), info_.fd(), complaint_.fd()})
            watch(source);
    }

    void stop() override
    {
        // The first process inside waits for bwrap before it is bound to bwrap's life: it must be known first.
        wait_for_info();
        const FdRef victim = first_ ? FdRef(first_) : FdRef(bwrap_);
        if (victim.get() >= 0) signal_process(victim, SIGKILL, "ending the session");
        if (const auto own = group()) kill_group(*own);
    }

    SandboxResult result() override
    {
        if (!reaped_ || (first_ && !has_ended(first_))) return {false, "", 0, 0};
        if (timed_out_) return {true, "timeout", CLD_KILLED, SIGKILL};
        if (WIFSIGNALED(status_)) return {true, "signal", CLD_KILLED, WTERMSIG(status_)};
        const int status = WEXITSTATUS(status_);
        return {true, status == 0 ? "success" : "exit-code", CLD_EXITED, status};
    }

    void process() override
    {
        if (!bwrap_) return;
        hear_info();
        complaint_.text();
        hear_end();
        look_at_the_time();
    }

    // The first one: before the agent starts, all others are its children, in the same namespaces.
    std::vector<pid_t> processes() override
    {
        wait_for_info();
        return first_ && !has_ended(first_) ? std::vector<pid_t>{first_pid_} : std::vector<pid_t>{};
    }

    bool is_there() override
    {
        process();
        return bwrap_ && !result().ended;
    }

protected:
    [[nodiscard]] std::optional<ControlGroup> group() const override { return group_ ? group_->group() : std::nullopt; }

private:
    // Ends all of it at once, as systemd does.
    void look_at_the_time()
    {
        if (reaped_) due_ = Deadline::max(); // it is ending already
        if (Clock::now() < due_) return;
        due_ = Deadline::max();
        timed_out_ = true;
        stop();
    }

    void wait_for_info()
    {
        const Deadline deadline = in_seconds(info_patience_seconds);
        for (hear_info(); !first_ && info_ && Clock::now() < deadline; hear_info())
            wait_for_input(info_.fd(), deadline);
    }

    void hear_info()
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

    void hear_end()
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

    std::optional<OwnGroup> group_;
    Overheard info_;
    UniqueFd bwrap_; // pidfd
    UniqueFd first_; // pidfd of the first process inside
    pid_t bwrap_pid_ = -1;
    pid_t first_pid_ = -1;
    bool reaped_ = false;
    bool timed_out_ = false; // by limits.runtime
    int status_ = 0;
    UniqueFd keeper_; // does what is left to do when this process is killed
};

} // namespace

void require_bwrap(const AsRoot &root)
{
    require_method_programs(SandboxMethod::bwrap);
    std::vector<std::string_view> missing;
    for (const auto &[capability, name] : needed)
        if (!has_capability(capability)) missing.push_back(name);
    if (!missing.empty())
        throw Failure(FailureKind::sandbox_method,
                      "root of this container cannot mount or cannot become the agent's account (it lacks " +
                          fmt::to_string(fmt::join(missing, ", ")) +
                          "), which sandbox.method bwrap needs; start the container with these capabilities, or choose another method");
    if (const std::vector<std::string> refused = refused_mount_calls(root); !refused.empty())
        throw Failure(FailureKind::sandbox_method,
                      "a system-call filter around this container refuses " + fmt::to_string(fmt::join(refused, ", ")) +
                          ", which sandbox.method bwrap needs; start the container with a seccomp profile that "
                          "allows it (docs/platforms/methods.md, \"In a container\"), or choose another method");
}

void require_bwrap_network(const AsRoot & /*root*/, const NetworkPolicy &network)
{
    if (!has_own_network(network.mode) || has_capability(CAP_NET_ADMIN)) return;
    throw Failure(FailureKind::sandbox_method,
                  "root of this container lacks CAP_NET_ADMIN, which sandbox.method bwrap needs for " + name_of(network) +
                      ", to give the session a loopback of its own; start the container with that capability, or " + way_without(network));
}

std::unique_ptr<Sandbox> make_bwrap_sandbox(const AsRoot &root, const std::string &session_id, Uid user)
{
    return std::make_unique<BwrapSandbox>(root, session_id, user);
}

} // namespace pi_agent
