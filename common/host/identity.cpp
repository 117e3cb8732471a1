// What this process is: its ids, its namespaces, what is mounted there, and its parents.
#include "common/host/identity.hpp"

#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <set>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <fstream>

namespace pi_agent {

// --- The one home of the set*id calls: claiming root, and giving it up for good.

AsRoot AsRoot::claim()
{
    uid_t real = 1, effective = 1, saved = 1;
    if (getresuid(&real, &effective, &saved) != 0) throw_errno("reading the process's ids");
    if (real != 0 || effective != 0 || saved != 0) throw Failure(FailureKind::by_hand, "only root can run this program; users run pi");
    // Groups are whatever started us chose: sudo's target, or none, for a unit of systemd's.
    if (setgroups(0, nullptr) == 0 && setresgid(0, 0, 0) == 0) return AsRoot();
    if (errno != EPERM) throw_errno("taking root's own group");
    if (const auto problem = problem_of_user_namespace()) throw Failure(FailureKind::namespaces, "denied: " + *problem);
    throw Failure(FailureKind::namespaces, "denied: this process cannot take root's own group, as in a user namespace; users run pi");
}

namespace {

void check_ids(const Account &account)
{
    uid_t real_uid = 0, effective_uid = 0, saved_uid = 0;
    gid_t real_gid = 0, effective_gid = 0, saved_gid = 0;
    if (getresuid(&real_uid, &effective_uid, &saved_uid) != 0 || getresgid(&real_gid, &effective_gid, &saved_gid) != 0)
        throw_errno("reading the process's ids");
    const uid_t uid = account.uid.value();
    const gid_t gid = account.gid.value();
    if (real_uid != uid || effective_uid != uid || saved_uid != uid || real_gid != gid || effective_gid != gid || saved_gid != gid)
        throw Failure(ExitStatus::internal, "the process did not become uid " + std::to_string(uid));
}

void check_groups(const std::vector<gid_t> &expected)
{
    const int count = getgroups(0, nullptr);
    if (count < 0) throw_errno("reading the process's groups");
    std::vector<gid_t> actual(static_cast<std::size_t>(count));
    if (getgroups(count, actual.data()) != count) throw_errno("reading the process's groups");
    if (std::set<gid_t>(actual.begin(), actual.end()) != std::set<gid_t>(expected.begin(), expected.end()))
        throw Failure(ExitStatus::internal, "the process did not take the account's groups");
}

bool is_of_the_host()
{
    std::uint64_t inside = 1, outside = 1, count = 0;
    std::ifstream map("/proc/self/uid_map"); // empty in one that nobody has given numbers
    return !map.is_open() || (map >> inside >> outside >> count && inside == 0 && outside == 0 && count == UINT32_MAX);
}

uid_t nobody()
{
    uid_t uid = 65534;
    std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
    return uid;
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

std::uint64_t read_number(std::string_view digits)
{
    const auto number = to_number<std::uint64_t>(digits);
    if (!number) throw Failure(ExitStatus::internal, "/proc/self/mountinfo has an unknown form");
    return *number;
}

constexpr int most_ancestors = 1000;

struct Status {
    std::string name;
    pid_t parent = 0;
    bool is_roots = false;
};

// proc_pid_status(5). Empty for a process that has ended.
std::optional<Status> read_status(FdRef process)
{
    const UniqueFd file = UniqueFd::adopt(openat(process.get(), "status", O_RDONLY | O_CLOEXEC));
    std::array<char, 4096> buffer{};
    const ssize_t length = file ? read(file.get(), buffer.data(), buffer.size()) : -1;
    if (length <= 0) return std::nullopt;
    Status status;
    for (const auto line : split(std::string_view(buffer.data(), static_cast<std::size_t>(length)), '\n')) {
        const auto value_of = [&](std::string_view key) { return line.starts_with(key) ? line.substr(key.size()) : std::string_view(); };
        if (const auto name = value_of("Name:\t"); !name.empty()) status.name = name;
        if (const auto parent = value_of("PPid:\t"); !parent.empty()) status.parent = to_number<pid_t>(parent).value_or(0);
        if (const auto ids = value_of("Uid:\t"); !ids.empty()) status.is_roots = ids == "0\t0\t0\t0"; // real, effective, saved, files
    }
    return status;
}

UniqueFd open_directory_of(const std::string &process)
{
    return UniqueFd::adopt(open(("/proc/" + process).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

} // namespace

AsUser become_user([[maybe_unused]] AsRoot root, const Account &account)
{
    const uid_t uid = account.uid.value();
    const gid_t gid = account.gid.value();
    if (uid == 0 || uid == static_cast<uid_t>(-1) || gid == static_cast<gid_t>(-1))
        throw Failure(ExitStatus::internal, "refusing to become uid " + std::to_string(uid));
    if (!defence_is_on("become-user")) return AsUser(account.uid);
    // Groups first: after the uid is gone they can no longer be changed (CVE-2026-35535 was this order, unchecked).
    if (setgroups(account.groups.size(), account.groups.data()) != 0) throw_errno("setgroups for " + account.name);
    if (setresgid(gid, gid, gid) != 0) throw_errno("setresgid for " + account.name);
    if (setresuid(uid, uid, uid) != 0) throw_errno("setresuid for " + account.name);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("setting no_new_privs");
    if (prctl(PR_SET_DUMPABLE, defence_is_on("children-not-dumpable") ? 0 : 1, 0, 0, 0) != 0) throw_errno("clearing dumpable");
    check_ids(account);
    if (defence_is_on("groups-check")) check_groups(account.groups);
    // Try to regain: success means the drop was not real, and nothing after this line may run.
    if (setuid(0) == 0 || seteuid(0) == 0 || setresuid(0, 0, 0) == 0) std::abort();
    if (gid != 0 && (setgid(0) == 0 || setegid(0) == 0)) std::abort();
    check_ids(account);
    return AsUser(account.uid);
}

void act_on_files_as(const AsRoot & /*root*/, const Account &account)
{
    constexpr int capability_words = 2; // of version 3 (capget(2))
    setfsgid(account.gid.value());
    setfsuid(account.uid.value()); // takes what concerns files out of the effective capabilities (capabilities(7))
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, capability_words> data{};
    if (syscall(SYS_capget, &header, data.data()) != 0) throw_errno("reading this thread's capabilities");
    for (auto &word : data)
        word.effective = word.permitted;
    if (syscall(SYS_capset, &header, data.data()) != 0) throw_errno("keeping this thread's capabilities");
    const uid_t no_id = ~uid_t{0};
    if (static_cast<uid_t>(setfsuid(no_id)) != account.uid.value() || static_cast<gid_t>(setfsgid(no_id)) != account.gid.value())
        throw Failure(ExitStatus::internal, "file systems do not take this thread for " + account.name);
}

// --- Reads /proc: namespaces, mounts, and parents.

std::map<std::string, std::string> host_namespaces(const std::vector<std::string> &kinds)
{
    std::map<std::string, std::string> found;
    for (const auto &kind : kinds) {
        const auto host = namespace_of("1", kind);
        if (!host) throw_errno("reading the host's " + kind + " namespace");
        found[kind] = std::to_string(host->inode);
    }
    return found;
}

std::optional<std::string> problem_of_user_namespace()
{
    struct stat program {};
    if (::stat("/proc/self/exe", &program) != 0 || program.st_uid != nobody() || is_of_the_host()) return std::nullopt;
    return "this process is in a user namespace without the host's root (as unshare, podman unshare and bwrap make them), where sudo "
           "cannot work and nobody can tell which files root owns; run pi from an ordinary shell of this host";
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
    // Only the space separates. The kernel escapes space, tab, newline and backslash in names, but not the other white space that a user
    // can put into a name. A name split there would pass for a mount point (proc(5), mountinfo).
    const auto fields = split(split_elsewhere.empty() ? line : split_elsewhere, ' ');
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
    entry.options = fields.back();
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

// Climbing in /proc from each process to its parent.

bool has_ancestor(const std::function<bool(const Ancestor &)> &is_it)
{
    UniqueFd child = open_directory_of("self");
    for (int count = 0; child && count < most_ancestors; ++count) {
        const auto before = read_status(child);
        if (!before || before->parent <= 1) return false;
        UniqueFd parent = open_directory_of(std::to_string(before->parent));
        // Still its parent now that the directory is open: so the number meant that one all the time.
        if (const auto after = read_status(child); !parent || !after || after->parent != before->parent) return false;
        const auto status = read_status(parent);
        if (!status) return false;
        if (is_it({parent, status->name, status->is_roots, before->parent})) return true;
        child = std::move(parent);
    }
    return false;
}

bool looks_like_job(const Ancestor &ancestor)
{
    return ancestor.is_roots && ancestor.name.starts_with(job_process);
}

} // namespace pi_agent
