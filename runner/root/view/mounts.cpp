// The one home of the mount calls.
#include "runner/root/view/mounts.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/seams/defence.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <linux/mount.h>
#include <sched.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

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

std::string unescape(std::string_view text)
{
    if (text.find('\\') == std::string_view::npos) return std::string(text);
    std::string plain;
    for (std::size_t index = 0; index < text.size(); ++index) {
        const bool escape = text[index] == '\\' && index + 3 < text.size();
        if (!escape) {
            plain += text[index];
            continue;
        }
        plain += static_cast<char>((text[index + 1] - '0') * 64 + (text[index + 2] - '0') * 8 + (text[index + 3] - '0'));
        index += 3;
    }
    return plain;
}

// Only the space separates: the kernel escapes space, tab, newline and backslash in names, but not the other white space that a user can
// put into a name, and a name split there would pass for a mount point (proc(5), mountinfo).
std::vector<std::string_view> split_at_spaces(std::string_view text)
{
    std::vector<std::string_view> fields;
    fields.reserve(12);
    for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end == std::string_view::npos ? 0 : end + 1)) {
        end = text.find(' ');
        fields.push_back(text.substr(0, end));
    }
    return fields;
}

std::uint64_t read_number(std::string_view digits)
{
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size())
        throw Failure(ExitStatus::internal, "/proc/self/mountinfo has an unknown form");
    return value;
}

void in_thread(const std::function<void()> &task)
{
    std::future<void> done;
    try {
        done = std::async(std::launch::async, task);
    } catch (const std::system_error &failure) {
        throw Failure(ExitStatus::system_failure, std::string("starting a thread for mounting: ") + failure.what());
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
    const auto apart = [&task] {
        // Of this thread alone (unshare(2)).
        if (unshare(CLONE_NEWNS) != 0) throw_errno("taking a mount table of its own");
        if (mount(nullptr, "/", nullptr, mount_private | mount_recursive, nullptr) != 0) throw_errno("keeping mounts to itself");
        task();
    };
    in_thread(apart);
}

void with_mounts_of(const AsRoot & /*root*/, FdRef mount_namespace, const std::function<void()> &task)
{
    const auto apart = [&] {
        // Root and working directory become those of the namespace, so they must be this thread's own (setns(2)).
        if (unshare(CLONE_FS) != 0 || setns(mount_namespace.get(), CLONE_NEWNS) != 0) throw_errno("entering the session's mount table");
        task();
    };
    in_thread(apart);
}

void make_shared(const AsRoot & /*root*/, const std::string &path)
{
    if (mount(nullptr, path.c_str(), nullptr, mount_shared, nullptr) != 0) throw_errno("making " + path + " shared");
}

std::uint64_t mount_id(FdRef fd)
{
    struct statx facts {};
    if (statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &facts) != 0) throw_errno("examining a mount");
    return facts.stx_mnt_id;
}

const MountEntry *mount_that_holds(const std::vector<MountEntry> &mounts, FdRef directory)
{
    const auto found =
        std::find_if(mounts.begin(), mounts.end(), [id = mount_id(directory)](const MountEntry &entry) { return entry.id == id; });
    return found == mounts.end() ? nullptr : &*found;
}

std::string name_mount(const std::vector<MountEntry> &mounts, FdRef directory)
{
    const MountEntry *mount = mount_that_holds(mounts, directory);
    return mount == nullptr ? "" : " (" + escape_for_display(mount->type) + " mounted at " + escape_for_display(mount->point) + ")";
}

MountEntry parse_mount(const std::string &line)
{
    std::string split_elsewhere;
    if (!defence_is_on("strict-mountinfo")) {
        split_elsewhere = line;
        std::replace(split_elsewhere.begin(), split_elsewhere.end(), '\f', ' ');
    }
    const std::vector<std::string_view> fields = split_at_spaces(split_elsewhere.empty() ? line : split_elsewhere);
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    constexpr std::size_t before_dash = 6;
    if (static_cast<std::size_t>(dash - fields.begin()) < before_dash || fields.end() - dash < 4)
        throw Failure(ExitStatus::internal, "/proc/self/mountinfo has an unknown form");
    MountEntry entry{};
    entry.id = read_number(fields[0]);
    entry.parent = read_number(fields[1]);
    entry.point = unescape(fields[4]);
    entry.type = *(dash + 1);
    entry.source = unescape(*(dash + 2));
    return entry;
}

std::vector<MountEntry> list_mounts()
{
    std::ifstream file("/proc/self/mountinfo");
    std::vector<MountEntry> mounts;
    std::string line;
    while (std::getline(file, line))
        mounts.push_back(parse_mount(line));
    if (mounts.empty() || file.bad()) throw Failure(ExitStatus::system_failure, "/proc/self/mountinfo cannot be read");
    return mounts;
}

std::vector<std::string> topmost_mounts_below(const std::vector<MountEntry> &mounts, const std::string &path)
{
    std::vector<std::string> points;
    for (const auto &mount : mounts)
        if (mount.point.compare(0, path.size() + 1, path + "/") == 0) points.push_back(mount.point.substr(path.size() + 1));
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    std::vector<std::string> topmost;
    std::copy_if(points.begin(), points.end(), std::back_inserter(topmost), [&](const std::string &point) {
        return std::none_of(points.begin(), points.end(),
                            [&](const std::string &other) { return point.compare(0, other.size() + 1, other + "/") == 0; });
    });
    return topmost;
}

} // namespace pi_agent
