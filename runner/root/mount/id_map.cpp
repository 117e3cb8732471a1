// Builds the user namespace that carries a project mount's id map.
#include "runner/root/mount/mounts.hpp"

#include "common/seams/seams.hpp"

#include <algorithm>
#include <csignal>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace pi_agent {

namespace {

constexpr int holder_patience_seconds = 5;
constexpr std::uint64_t id_count = 4'294'967'295; // 2^32 - 1: the last one means "no id"

std::string line(std::uint64_t inside, std::uint64_t outside, std::uint64_t count)
{
    if (count == 0) return "";
    return std::to_string(inside) + " " + std::to_string(outside) + " " + std::to_string(count) + "\n";
}

void write_map(const std::string &path, const std::string &text)
{
    const UniqueFd file = UniqueFd::adopt(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) throw_errno("writing " + path);
}

// A process that only holds a new user namespace open until it is killed. It opens that namespace itself: anybody else would need
// CAP_SYS_PTRACE, because a copy of root's memory is not dumpable, and root of a container lacks that capability.
class Holder {
public:
    Holder()
    {
        auto [ours, theirs] = make_channel();
        const pid_t runner = getpid();
        pid_ = static_cast<pid_t>(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
        if (pid_ == 0) {
            // The child keeps no descriptor of root's, and it does not outlive root.
            if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != runner || !send_own_namespace(theirs) ||
                close_range(3, ~0U, 0) != 0)
                _exit(1);
            for (;;)
                pause();
        }
        theirs.reset();
        if (pid_ < 0)
            throw Failure(
                ExitStatus::unavailable,
                std::string(SystemFailure(errno, "creating a user namespace for the id map").what()) +
                    "; root needs one: is user.max_user_namespaces 0? set it to at least 1000 with sysctl. In a container: does its "
                    "system-call filter allow clone with CLONE_NEWUSER? docker's does once root has CAP_SYS_ADMIN");
        channel_ = std::move(ours);
    }
    Holder(const Holder &) = delete;
    Holder &operator=(const Holder &) = delete;
    ~Holder()
    {
        if (kill(pid_, SIGKILL) != 0) return; // then it ends with this process, which waits for nobody
        int status = 0;
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
    }
    [[nodiscard]] std::string proc() const { return "/proc/" + std::to_string(pid_); }
    [[nodiscard]] UniqueFd take_namespace() const
    {
        std::optional<Packet> packet = receive_packet(channel_, in_seconds(holder_patience_seconds));
        if (!packet || packet->fds.size() != 1)
            throw Failure(ExitStatus::system_failure, "the process that holds the id map could not open its user namespace");
        UniqueFd own = std::move(packet->fds.front());
        return own;
    }

private:
    static bool send_own_namespace(FdRef channel) noexcept
    {
        try {
            const UniqueFd own = UniqueFd::adopt(open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
            if (own) send_packet(channel, "N", {own.get()}, in_seconds(holder_patience_seconds));
            return static_cast<bool>(own);
        } catch (...) {
            return false;
        }
    }

    UniqueFd channel_;
    pid_t pid_ = -1;
};

} // namespace

std::string swap_map(std::uint32_t first, std::uint32_t second)
{
    const std::uint64_t low = std::min(first, second);
    const std::uint64_t high = std::max(first, second);
    if (high >= id_count) throw Failure(ExitStatus::internal, "there is no id map for the value that means no id");
    if (low == high) return line(0, 0, id_count);
    return line(0, 0, low) + line(low, high, 1) + line(low + 1, low + 1, high - low - 1) + line(high, low, 1) +
           line(high + 1, high + 1, id_count - high - 1);
}

UniqueFd make_id_map(const AsRoot & /*root*/, const Account &user, const Account &agent, Others others)
{
    const Holder holder;
    fault_point("holding-id-map");
    const bool own = defence_is_on("own-ids-only"); // otherwise root takes the user's place
    const bool alone = others == Others::unmapped && defence_is_on("others-unmapped");
    write_map(holder.proc() + "/uid_map",
              alone ? line(user.uid.value(), agent.uid.value(), 1) : swap_map(own ? user.uid.value() : 0, agent.uid.value()));
    write_map(holder.proc() + "/gid_map", swap_map(own ? user.gid.value() : 0, agent.gid.value()));
    return holder.take_namespace();
}

} // namespace pi_agent
