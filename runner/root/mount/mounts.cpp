// The one home of the mount calls, and of the id maps that a mount carries.
#include "runner/root/mount/mounts.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"

#include <csignal>
#include <future>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>

// <sys/mount.h> and <linux/mount.h> cannot be included together with the glibc of Debian 12.
extern "C" int mount(const char *, const char *, const char *, unsigned long, const void *) noexcept;
extern "C" int umount2(const char *, int) noexcept;

namespace pi_agent {

namespace {

constexpr unsigned long mount_shared = 1UL << 20U;        // MS_SHARED
constexpr unsigned long mount_private = 1UL << 18U;       // MS_PRIVATE
constexpr unsigned long mount_recursive = 1UL << 14U;     // MS_REC
constexpr int unmount_detach = 2;                         // MNT_DETACH
constexpr int unmount_nofollow = 8;                       // UMOUNT_NOFOLLOW
constexpr std::uint64_t propagation_private = 1UL << 18U; // MS_PRIVATE

int configure(const UniqueFd &context, unsigned command, const char *key, const void *value)
{
    return static_cast<int>(syscall(SYS_fsconfig, context.get(), command, key, value, 0));
}

void in_thread(const std::function<void()> &task)
{
    std::future<void> done;
    try {
        done = std::async(std::launch::async, task);
    } catch (const std::system_error &failure) {
        throw Failure(ExitStatus::system_failure, std::string("starting a thread for another namespace: ") + failure.what());
    }
    done.get();
}

// --- Builds the user namespace that carries a project mount's id map.

constexpr int holder_patience_seconds = 5;
constexpr std::uint64_t id_count = 4'294'967'295; // 2^32 - 1: the last one means "no id"

std::string line(std::uint64_t inside, std::uint64_t outside, std::uint64_t count)
{
    return count == 0 ? "" : std::to_string(inside) + " " + std::to_string(outside) + " " + std::to_string(count) + "\n";
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

DetachedMount clone_mount(const AsRoot & /*root*/, FdRef source, Submounts submounts, const MountAttributes &attributes)
{
    const unsigned recursive = submounts == Submounts::take_along ? AT_RECURSIVE : 0U;
    DetachedMount mount{UniqueFd::adopt(static_cast<int>(
        syscall(SYS_open_tree, source.get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | static_cast<unsigned>(AT_EMPTY_PATH) | recursive)))};
    if (!mount.fd) throw_errno("copying a mount");
    mount_attr attribute{};
    attribute.attr_set = defence_is_on("nosuid-clones") ? MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV : 0;
    if (attributes.read_only && defence_is_on("read-only-clones")) attribute.attr_set |= MOUNT_ATTR_RDONLY;
    if (defence_is_on("private-clones")) attribute.propagation = propagation_private;
    if (attributes.id_map != nullptr) {
        attribute.attr_set |= MOUNT_ATTR_IDMAP;
        attribute.userns_fd = static_cast<std::uint64_t>(attributes.id_map->get());
    }
    if (syscall(SYS_mount_setattr, mount.fd.get(), "", static_cast<unsigned>(AT_EMPTY_PATH) | recursive, &attribute, sizeof attribute) != 0)
        throw_errno(attributes.id_map != nullptr ? "id-mapping a mount" : "setting a mount's attributes");
    return mount;
}

DetachedMount new_filesystem(const AsRoot & /*root*/, const char *type, const std::vector<MountOption> &options, bool read_only,
                             Execution execution)
{
    const UniqueFd context = UniqueFd::adopt(static_cast<int>(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)));
    if (!context) throw_errno(std::string("opening a new ") + type);
    for (const auto &option : options)
        if (configure(context, FSCONFIG_SET_STRING, option.key, option.value.c_str()) != 0)
            throw_errno(std::string("configuring a new ") + type + ": " + option.key);
    if (configure(context, FSCONFIG_CMD_CREATE, nullptr, nullptr) != 0) throw_errno(std::string("creating a new ") + type);
    unsigned attributes = MOUNT_ATTR_NOSUID;
    if (execution == Execution::denied) attributes |= MOUNT_ATTR_NOEXEC;
    if (std::string(type) != "devpts") attributes |= MOUNT_ATTR_NODEV;
    if (read_only) attributes |= MOUNT_ATTR_RDONLY;
    DetachedMount mount{UniqueFd::adopt(static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, attributes)))};
    if (!mount.fd) throw_errno(std::string("mounting a new ") + type);
    return mount;
}

void make_read_only(const AsRoot & /*root*/, const DetachedMount &mount)
{
    mount_attr attribute{};
    attribute.attr_set = MOUNT_ATTR_RDONLY;
    if (syscall(SYS_mount_setattr, mount.fd.get(), "", AT_EMPTY_PATH, &attribute, sizeof attribute) != 0)
        throw_errno("making a mount read-only");
}

void attach(const AsRoot & /*root*/, const DetachedMount &mount, FdRef target)
{
    if (syscall(SYS_move_mount, mount.fd.get(), "", target.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
        throw_errno("attaching a mount");
}

bool detach_at(const AsRoot & /*root*/, const std::string &path)
{
    if (umount2(path.c_str(), unmount_detach | unmount_nofollow) == 0) return true;
    if (errno != EINVAL && errno != ENOENT) throw_errno("unmounting " + path);
    return false;
}

void with_own_mounts(const AsRoot & /*root*/, const std::function<void()> &task)
{
    in_thread([&task] {
        // Of this thread alone (unshare(2)).
        if (unshare(CLONE_NEWNS) != 0) throw_errno("taking a mount table of its own");
        if (mount(nullptr, "/", nullptr, mount_private | mount_recursive, nullptr) != 0) throw_errno("keeping mounts to itself");
        task();
    });
}

void with_mounts_of(const AsRoot & /*root*/, FdRef mount_namespace, const std::function<void()> &task)
{
    in_thread([&] {
        // Root and working directory become those of the namespace, so they must be this thread's own (setns(2)).
        if (unshare(CLONE_FS) != 0 || setns(mount_namespace.get(), CLONE_NEWNS) != 0) throw_errno("entering the session's mount table");
        task();
    });
}

void with_network_of(const AsRoot & /*root*/, FdRef network_namespace, const std::function<void()> &task)
{
    in_thread([&] {
        if (setns(network_namespace.get(), CLONE_NEWNET) != 0) throw_errno("entering the session's network");
        task();
    });
}

void make_shared(const AsRoot & /*root*/, const std::string &path)
{
    if (mount(nullptr, path.c_str(), nullptr, mount_shared, nullptr) != 0) throw_errno("making " + path + " shared");
}

void attach_late(const AsRoot &root, FdRef mount_namespace, std::vector<LateMount> &mounts)
{
    with_mounts_of(root, mount_namespace, [&] {
        const UniqueFd view = open_or_throw("opening the session's view", "/", O_PATH | O_DIRECTORY);
        for (const auto &late : mounts)
            attach(root, late.mount, open_beneath(view, late.path.substr(1), O_PATH));
    });
    fault_point("late-mounted");
    mounts.clear();
}

// Questions that the kernel answers with EINVAL, and a filter with EPERM or ENOSYS.
std::vector<std::string> refused_mount_calls(const AsRoot & /*root*/)
{
    struct Question {
        const char *name;
        long number;
        std::array<long, 5> arguments;
    };
    constexpr long wrong = -1; // as a descriptor, and as flags
    static const char nowhere[] = "";
    const auto empty = reinterpret_cast<long>(nowhere); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast): of a system call
    const std::array<Question, 11> questions = {{{"pivot_root", SYS_pivot_root, {empty, empty}},
                                                 {"mount", SYS_mount, {empty, empty, empty, 0, 0}},
                                                 {"umount2", SYS_umount2, {empty, wrong}},
                                                 {"open_tree", SYS_open_tree, {wrong, empty, wrong}},
                                                 {"move_mount", SYS_move_mount, {wrong, empty, wrong, empty, wrong}},
                                                 {"fsopen", SYS_fsopen, {empty, wrong}},
                                                 {"fsconfig", SYS_fsconfig, {wrong, wrong, 0, 0, 0}},
                                                 {"fsmount", SYS_fsmount, {wrong, wrong, wrong}},
                                                 {"mount_setattr", SYS_mount_setattr, {wrong, empty, 0, 0, 0}},
                                                 {"setns", SYS_setns, {wrong, wrong}},
                                                 {"unshare", SYS_unshare, {wrong}}}};
    std::vector<std::string> refused;
    for (const auto &[name, number, arguments] : questions)
        if (syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]) < 0 &&
            (errno == EPERM || errno == ENOSYS))
            refused.emplace_back(name);
    return refused;
}

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
