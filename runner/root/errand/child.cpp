// Forked children under another identity, with deadlines.
#include "runner/root/errand/errand.hpp"

#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>

namespace pi_agent {

namespace {

constexpr int hang_up_patience_seconds = 2;
constexpr rlim_t child_cpu_seconds = sync_patience_seconds;
constexpr auto look_interval = std::chrono::milliseconds(250);
constexpr rlim_t child_file_bytes = rlim_t{300} << 20U;

void close_all_but(std::vector<int> keep)
{
    std::sort(keep.begin(), keep.end());
    unsigned next = 3;
    for (const int fd : keep) {
        if (fd < 3) continue;
        if (static_cast<unsigned>(fd) > next && close_range(next, static_cast<unsigned>(fd) - 1, 0) != 0)
            throw_errno("closing descriptors");
        next = static_cast<unsigned>(fd) + 1;
    }
    if (close_range(next, ~0U, 0) != 0) throw_errno("closing descriptors");
}

// Keeps a lower limit where there already is one: root may raise a limit only as long as it has CAP_SYS_RESOURCE
// (runner/root/confined/root_confinement.cpp).
template <typename Resource>
void limit(Resource resource, rlim_t wanted)
{
    rlimit now{};
    if (getrlimit(resource, &now) != 0) throw_errno("limiting a child");
    const rlim_t most = std::min(wanted, now.rlim_max);
    const rlimit lowered{most, most};
    if (setrlimit(resource, &lowered) != 0) throw_errno("limiting a child");
}

void limit_child()
{
    // The writer copies what a reader's fstat called small: a file that grows meanwhile ends at this limit.
    limit(RLIMIT_FSIZE, child_file_bytes);
    limit(RLIMIT_CPU, child_cpu_seconds);
}

// The number that stands for the parent in a PID namespace that the parent is not in.
constexpr pid_t elsewhere = 0;

pid_t fork_into_own_pid_namespace()
{
    // Works as fork(2), with CLONE_NEWPID of clone(2). The library's own record of the thread's number is wrong afterwards, which does not
    // matter with one thread.
    const auto pid = static_cast<pid_t>(syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (pid < 0 && (errno == ENOSPC || errno == EUSERS))
        throw SystemFailure(errno, "making a PID namespace, which root needs (is user.max_pid_namespaces 0?)");
    return pid;
}

bool has_hung_up(FdRef channel)
{
    pollfd wait{channel.get(), POLLIN, 0};
    return poll(&wait, 1, 0) > 0 && (wait.revents & (POLLHUP | POLLERR)) != 0;
}

// The kernel forgets the parent-death signal when the uid changes. So this asks for it afterwards, and then looks for the parent once more.
void die_with_parent(pid_t parent, FdRef channel)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) throw_errno("asking for the parent-death signal");
    if (getppid() != parent || (parent == elsewhere && has_hung_up(channel))) _exit(1);
}

[[noreturn]] void run_child(FdRef channel, const std::function<void(FdRef)> &run)
{
    try {
        run(channel);
        _exit(0);
    } catch (const Failure &failure) {
        send_failure(channel, failure);
    } catch (const std::exception &failure) {
        send_failure(channel, Failure(ExitStatus::internal, failure.what()));
    } catch (...) {
        send_failure(channel, Failure(ExitStatus::internal, "unknown error"));
    }
    _exit(1); // nothing is thrown past this function
}

// False when it has not ended by the deadline. Throws nothing, because destructors call it.
bool reap(pid_t pid, Deadline deadline) noexcept
{
    if (waitpid(pid, nullptr, WNOHANG) != 0) return true;
    const UniqueFd process = open_process(pid);
    for (;;) {
        pollfd wait{process.get(), POLLIN, 0};
        poll(&wait, 1, process ? milliseconds_left(deadline) : 1); // without a free descriptor, look again and again
        if (waitpid(pid, nullptr, WNOHANG) != 0) return true;
        if (Clock::now() >= deadline) return false;
    }
}

} // namespace

Child::Child(const AsRoot &root, std::string name, const Account &identity, const std::vector<int> &keep,
             const std::function<void(const AsUser &, FdRef)> &task, Descendants descendants)
    : name_(std::move(name))
{
    const bool apart = descendants == Descendants::end_with_it && defence_is_on("program-namespace");
    const pid_t parent = apart ? elsewhere : getpid();
    start(apart, [&](FdRef channel) {
        std::vector<int> descriptors = keep;
        descriptors.push_back(channel.get());
        close_all_but(std::move(descriptors));
        limit_child();
        const AsUser user = become_user(root.for_child(), identity);
        die_with_parent(parent, channel);
        // --- not root from here: identity is final ---
        task(user, channel);
    });
}

Child::Child(const AsRoot & /*root*/, std::string name, const std::function<std::string()> &task) : name_(std::move(name))
{
    const pid_t parent = getpid();
    start(false, [&](FdRef channel) {
        die_with_parent(parent, channel);
        send_long_answer(channel, task());
    });
}

void Child::start(bool apart, const std::function<void(FdRef)> &run)
{
    auto ends = make_channel(); // this process's, and the child's
    pid_ = apart ? fork_into_own_pid_namespace() : fork();
    if (pid_ < 0) throw_errno("starting the " + name_);
    if (pid_ == 0) {
        ends.first.reset();
        run_child(ends.second, run);
    }
    channel_ = std::move(ends.first);
}

Child::~Child()
{
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    // A child in the middle of a call to a file system that does not answer dies only when that answers. It is left to the end of the
    // runner's scope, and root does not wait for it.
    reap(pid_, defence_is_on("child-end") ? in_seconds(1) : Deadline::max());
}

void Child::hang_up() noexcept
{
    channel_.reset();
    if (reap(pid_, in_seconds(hang_up_patience_seconds))) pid_ = -1;
}

std::optional<Packet> Child::receive_one(Deadline deadline, int patience_seconds)
{
    std::optional<Packet> packet;
    try {
        packet = receive_packet(channel_, deadline);
    } catch (const DeadlineExceeded &) {
        throw Failure(FailureKind::no_progress, "the " + name_ + " made no progress for " + std::to_string(patience_seconds) +
                                                    " seconds and was stopped; check whether a file system that it uses does not answer");
    }
    if (!packet) throw Failure(ExitStatus::system_failure, "the " + name_ + " was killed");
    const char tag = packet->bytes[0];
    packet->bytes.erase(0, 1);
    if (tag == progress_tag) {
        if (!packet->bytes.empty()) progress_ = packet->bytes;
        return std::nullopt;
    }
    if (tag == answer_tag) return packet;
    if (tag != failure_tag) throw ProtocolError("the " + name_ + " sent an unknown message");
    Decoder decoder(packet->bytes);
    const auto status = static_cast<ExitStatus>(decoder.number());
    const std::uint64_t kind = decoder.number();
    const bool is_known = kind <= static_cast<std::uint64_t>(last_failure_kind);
    throw Failure(status, is_known ? static_cast<FailureKind>(kind) : FailureKind::other, decoder.text());
}

Packet Child::receive()
{
    for (;;)
        if (std::optional<Packet> packet = receive_one()) return std::move(*packet);
}

std::string Child::receive_long(int patience_seconds, const std::function<void()> &meanwhile)
{
    const Deadline deadline = in_seconds(patience_seconds);
    std::optional<Packet> head;
    const auto require_time = [&] { // progress, or one small piece after the other, does not extend it
        if (Clock::now() >= deadline) throw Failure(FailureKind::no_progress, "the " + name_ + " did not send its answer in time");
    };
    for (; !head; require_time()) {
        if (meanwhile && !wait_for_input(channel_, std::min(deadline, Clock::now() + look_interval)) && Clock::now() < deadline)
            meanwhile();
        else
            head = receive_one(deadline, patience_seconds);
    }
    Decoder decoder(head->bytes);
    const std::uint64_t size = decoder.number();
    decoder.end();
    if (size > record_limit && defence_is_on("record-limit")) throw ProtocolError("the " + name_ + " sent too much");
    std::string bytes;
    for (; bytes.size() < size; require_time()) {
        if (const std::optional<Packet> piece = receive_one(deadline, patience_seconds)) bytes += piece->bytes;
        if (bytes.size() > size) throw ProtocolError("the " + name_ + " sent more than it said");
    }
    return bytes;
}

} // namespace pi_agent
