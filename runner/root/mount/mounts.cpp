// The one home of the mount calls.
#include "runner/root/mount/mounts.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"

#include <future>
#include <linux/mount.h>
#include <sched.h>
#include <sys/syscall.h>
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

std::vector<std::string> places_of(const std::vector<LateMount> &mounts)
{
    std::vector<std::string> places;
    for (const auto &late : mounts)
        places.push_back(late.path);
    return places;
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

} // namespace pi_agent
