// Opens what lies below a directory, or where only root can have written, step by step, and finds the commands that messages may name.
#include "common/host/beneath.hpp"

#include "common/base/files.hpp"
#include "common/host/identity.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/vfs.h>

#include <climits>
#include <cstdio>
#include <deque>

namespace pi_agent {

namespace {

UniqueFd make_directory(FdRef parent, const std::string &name)
{
    for (int attempt = 0; attempt < 3; ++attempt) {
        if (mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST) throw_errno("creating " + escape_for_display(name));
        UniqueFd directory = try_take_directory(parent, name);
        if (directory) return directory;
        // A link or a file instead of a directory is the agent's own doing. It keeps a file beside the directory, and removes anything
        // else.
        if (errno != ENOTDIR && errno != ELOOP && errno != ENOENT) throw_errno("opening " + escape_for_display(name));
        struct stat facts {};
        if (fstatat(parent.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
            require_gone("examining " + escape_for_display(name));
        else if (S_ISREG(facts.st_mode))
            set_aside(parent, name);
        else if (unlinkat(parent.get(), name.c_str(), 0) != 0 && errno != ENOENT)
            throw_errno("replacing " + escape_for_display(name));
    }
    throw Failure(FailureKind::changed_meanwhile,
                  escape_for_display(name) + " in the agent's home changed while it was written; end your other sessions and try again");
}

PathStep take_step(int directory, const std::string &name, std::string path)
{
    PathStep step{std::move(path), open_step(directory, name)};
    if (!step.fd) throw_errno("cannot open " + escape_for_display(step.path));
    if (::fstat(step.fd.get(), &step.status) != 0) throw_errno("cannot examine " + escape_for_display(step.path));
    return step;
}

constexpr std::array<const char *, 6> own_directories = {"/etc/pi-agent",       "/usr/lib/pi-agent", "/usr/libexec/pi-agent",
                                                         "/usr/share/pi-agent", "/var/lib/pi-agent", "/var/log/pi-agent"};

// Between the message and the command nobody but root may be able to put something else there: a chmod follows links.
void require_root_alone_can_exchange(const PathStep &holder, const PathStep &entry)
{
    if (!only_root_can_change(holder) || S_ISLNK(entry.status.st_mode))
        throw Failure(ExitStatus::configuration, entry.path + " can lead elsewhere");
}

bool is_own(const std::string &path)
{
    const auto holds = [&](const std::string &directory) { return is_within(path, directory); };
    if (!is_property_safe(path) || std::none_of(own_directories.begin(), own_directories.end(), holds)) return false;
    try {
        const PathStep step = walk_path(path, require_root_alone_can_exchange);
        const bool has_one_name = S_ISDIR(step.status.st_mode) || (S_ISREG(step.status.st_mode) && step.status.st_nlink == 1);
        return step.path == path && has_one_name;
    } catch (const Failure &) {
        return false; // what cannot be looked at is not known to be harmless
    }
}

// The names that apply gives: pi-agent, and pi-agent-USER. Another one is the policy's word, and may be anybody's.
bool is_own_account(const std::string &account)
{
    const std::string own = "pi-agent";
    return account == own || account.compare(0, own.size() + 1, own + "-") == 0;
}

// Whoever could write there may have done so. To give it to root alone would bless what they wrote, so somebody must look first.
[[noreturn]] void refuse(const std::string &what, const std::string &wanted, const PathStep &step, const std::string &why,
                         const std::string &command)
{
    const auto subject = step.path == wanted ? "" : "; " + escape_for_display(step.path);
    throw Failure(FailureKind::untrusted, fmt::format("the {} {} cannot be trusted{} {}; as the administrator, {}", what,
                                                      escape_for_display(wanted), subject.empty() ? ": it" : subject, why, command));
}

// The Nix store is writable by the group of its build users and sticky: they can add to it, but neither change nor replace root's entries.
bool is_nix_store(const PathStep &step) noexcept
{
    return step.path == "/nix/store" && (step.status.st_mode & S_ISVTX) != 0 && (step.status.st_mode & S_IWOTH) == 0;
}

// The server of a FUSE file system says who owns its files. The kernel asks it for other users only if the server allows that
// (allow_other), and mountinfo shows who mounted it.
bool is_served_by_somebody(const PathStep &step)
{
    struct statfs system {};
    if (::fstatfs(step.fd.get(), &system) != 0) throw_errno("cannot examine " + escape_for_display(step.path));
    if (system.f_type != FUSE_SUPER_MAGIC) return false;
    const auto mounts = list_mounts();
    const MountEntry *mount = mount_that_holds(mounts, step.fd);
    return mount == nullptr || ("," + mount->options + ",").find(",user_id=0,") == std::string::npos;
}

void require_only_root_can_change(const std::string &what, const std::string &wanted, const PathStep &holder, const PathStep &step)
{
    if (!defence_is_on("trusted-files")) return;
    const bool enters_mount = &holder == &step || holder.status.st_dev != step.status.st_dev;
    if (enters_mount && defence_is_on("trusted-fuse") && is_served_by_somebody(step))
        throw Failure(FailureKind::untrusted,
                      fmt::format("the {} {} cannot be trusted: {} lies on a file system that a user serves (FUSE) and who decides there "
                                  "which files belong to root; the administrator unmounts it, or moves the file",
                                  what, escape_for_display(wanted), escape_for_display(step.path)));
    if (step.status.st_uid != 0) {
        if (const auto problem = problem_of_user_namespace())
            throw Failure(FailureKind::untrusted,
                          fmt::format("the {} {} cannot be trusted: {}", what, escape_for_display(wanted), *problem));
        refuse(what, wanted, step, fmt::format("belongs to uid {}, not to root", step.status.st_uid),
               "examine it, then " + command_on("chown root", step.path, "move it to a path that root owns from / on"));
    }
    if (S_ISLNK(step.status.st_mode)) return; // a link's own mode says nothing; its directory was judged before it
    if ((step.status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !is_nix_store(step))
        refuse(what, wanted, step, fmt::format("is writable by others than root (mode {:04o})", step.status.st_mode & 07777U),
               "examine it, then " + command_on("chmod g-w,o-w", step.path, "move it to where only root can write"));
}

// The first link on the way whose target is missing. All of that way was judged before: root alone can change it.
std::string find_dangling_link(const std::string &path)
{
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        struct stat facts {};
        const bool is_link = ::lstat(part.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
        if (is_link && ::stat(part.c_str(), &facts) != 0 && errno == ENOENT) return part;
        if (end == std::string::npos) return "";
    }
}

// Only a name that is missing itself is absent. A link to nothing was meant to lead to something, so that is not a SystemFailure.
PathStep walk_trusted(const std::string &path, const std::string &what)
{
    try {
        return walk_path(path,
                         [&](const PathStep &holder, const PathStep &entry) { require_only_root_can_change(what, path, holder, entry); });
    } catch (const SystemFailure &failure) {
        const std::string link = failure.error_number() == ENOENT && defence_is_on("dangling-links") ? find_dangling_link(path) : "";
        if (link.empty()) throw;
        throw Failure(
            ExitStatus::configuration,
            fmt::format("the {} {} cannot be opened: the symlink {} leads nowhere; as the administrator, restore what it leads to, "
                        "or remove it",
                        what, escape_for_display(path), escape_for_display(link)));
    }
}

// Opens what an O_PATH descriptor holds: nobody but root could have exchanged it, and /proc leads to the very same file.
UniqueFd reopen(const PathStep &step, int flags)
{
    return open_or_throw("cannot open " + escape_for_display(step.path), fmt::format("/proc/self/fd/{}", step.fd.get()), flags);
}

} // namespace

bool find_name(FdRef directory, const std::function<bool(const std::string &name)> &satisfies, const std::string &what)
{
    auto stream = DirectoryStream::reopened(directory);
    if (!stream) throw_errno("listing " + what);
    while (const dirent *entry = stream.next())
        if (satisfies(entry->d_name)) return true;
    if (errno != 0) throw_errno("listing " + what);
    return false;
}

std::vector<std::string> names_in(FdRef directory, const std::string &what)
{
    std::vector<std::string> names;
    const auto take = [&](const std::string &name) {
        names.push_back(name);
        return false;
    };
    find_name(directory, take, what);
    return names;
}

std::pair<std::string, std::string> split_last(const std::string &path)
{
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {"", path};
    return {path.substr(0, slash), path.substr(slash + 1)};
}

UniqueFd find_beneath(FdRef top, const std::string &path, int flags) noexcept
{
    if (!defence_is_on("beneath")) return open_resolved(top, path, flags & ~O_NOFOLLOW, 0);
    return open_resolved(top, path, flags | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

UniqueFd look_beneath(FdRef top, const std::string &path, int flags)
{
    UniqueFd fd = find_beneath(top, path, flags);
    if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) throw_errno("looking at " + escape_for_display(path));
    return fd;
}

UniqueFd open_beneath(FdRef top, const std::string &path, int flags)
{
    UniqueFd fd = find_beneath(top, path, flags);
    if (!fd) throw_errno("opening " + escape_for_display(path));
    return fd;
}

UniqueFd ensure_directory_beneath(FdRef top, const std::string &path)
{
    UniqueFd current = open_beneath(top, "", O_RDONLY | O_DIRECTORY);
    for (const auto name : split(path, '/'))
        current = make_directory(current, std::string(name));
    return current;
}

UniqueFd try_take_directory(FdRef parent, const std::string &name)
{
    UniqueFd directory = find_beneath(parent, name, O_RDONLY | O_DIRECTORY);
    if (!directory && errno == EACCES) {
        if (defence_is_on("removal-rights") && fchmodat(parent.get(), name.c_str(), 0700, AT_SYMLINK_NOFOLLOW) == 0)
            directory = find_beneath(parent, name, O_RDONLY | O_DIRECTORY);
        else
            errno = EACCES;
    }
    if (!directory) return directory;
    const struct stat facts = examine(directory, "examining " + escape_for_display(name));
    if ((facts.st_mode & 0700U) != 0700U) fchmod(directory.get(), 0700); // best_effort: what is missing shows when it is used
    return directory;
}

UniqueFd find_own_directory_beneath(FdRef top, const std::string &path)
{
    UniqueFd current = open_beneath(top, "", O_RDONLY | O_DIRECTORY);
    for (const auto name : split(path, '/'))
        if (current) current = try_take_directory(current, std::string(name));
    return current;
}

std::string set_aside(FdRef directory, const std::string &name)
{
    std::string kept = name.substr(0, 200) + ".kept-" + random_hex(4);
    if (renameat2(directory.get(), name.c_str(), directory.get(), kept.c_str(), RENAME_NOREPLACE) != 0 && errno != ENOENT)
        throw_errno("setting " + escape_for_display(name) + " aside");
    return kept;
}

std::string kernel_path(FdRef fd)
{
    std::string path = read_link(FdRef(AT_FDCWD), "/proc/self/fd/" + std::to_string(fd.get()));
    return path.size() >= PATH_MAX || !path.starts_with('/') ? "" : path;
}

std::string path_of_directory(FdRef fd)
{
    std::string path = kernel_path(fd);
    if (path.empty())
        throw Failure(FailureKind::directory, "denied: the path of the working directory is longer than 4,096 bytes, or does not exist on "
                                              "this host; cd to a directory higher up");
    return path;
}

UniqueFd open_step(int directory, const std::string &name) noexcept
{
    // O_DIRECTORY first: O_PATH alone would open an automount point without mounting what belongs there.
    constexpr int flags = O_PATH | O_NOFOLLOW;
    UniqueFd fd = open_at(FdRef(directory), name, flags | O_DIRECTORY);
    if (!fd && errno == ENOTDIR) fd = open_at(FdRef(directory), name, flags);
    return fd;
}

std::string path_of_step(const std::string &directory, const std::string &name)
{
    if (name == "..") return parent_of(directory);
    return directory == "/" ? "/" + name : directory + "/" + name;
}

std::string link_target(FdRef fd, const std::string &path)
{
    errno = ENAMETOOLONG; // of one without a target, which the kernel does not call a failure
    std::string target = read_link(fd, "");
    if (target.empty()) throw_errno("cannot read the symlink " + escape_for_display(path));
    if (target.size() >= PATH_MAX) throw SystemFailure(ENAMETOOLONG, "cannot read the symlink " + escape_for_display(path));
    return target;
}

PathStep walk_path(const std::string &path, const StepJudge &judge)
{
    if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos)
        throw SystemFailure(EINVAL, "cannot open " + escape_for_display(path) + " (not an absolute path)");
    auto current = take_step(AT_FDCWD, "/", "/");
    judge(current, current);
    const auto names = path_components(path);
    std::deque<std::string> pending(names.begin(), names.end());
    int links = 0;
    while (!pending.empty()) {
        const auto name = std::move(pending.front());
        pending.pop_front();
        auto entry = take_step(current.fd.get(), name, path_of_step(current.path, name));
        judge(current, entry);
        if (!S_ISLNK(entry.status.st_mode)) {
            current = std::move(entry);
            continue;
        }
        if (++links > most_links) throw SystemFailure(ELOOP, "cannot open " + escape_for_display(path));
        const auto target = link_target(entry.fd, entry.path);
        const auto parts = path_components(target);
        pending.insert(pending.begin(), parts.begin(), parts.end());
        if (target.front() == '/') current = take_step(AT_FDCWD, "/", "/");
    }
    return current;
}

// --- Which paths and accounts a command in a message may name.

std::string command_on(const std::string &command, const std::string &path, const std::string &otherwise)
{
    return is_own(path) ? "run: " + command + " " + path : otherwise;
}

std::string command_about(const std::string &account, const std::vector<std::string> &words, const std::string &otherwise)
{
    const bool is_plain = std::all_of(words.begin(), words.end(), [](const auto &word) { return !word.empty() && is_property_safe(word); });
    return is_own_account(account) && is_plain ? fmt::format("run: {}", fmt::join(words, " ")) : otherwise;
}

std::string name_as_word(const std::string &name)
{
    if (!name.empty() && is_made_of(name, "_-.@+")) return name;
    std::string inside;
    for (const char byte : name)
        inside += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
    std::string others = name;
    std::erase(others, '\\');
    return escape_for_display(others) == others ? "'" + inside + "'" : escape_for_display(name); // nobody pastes that one
}

// --- Files that only root can have written.

UniqueFd open_trusted(const std::string &path, int flags, const std::string &what)
{
    auto step = walk_trusted(path, what);
    if ((flags & O_DIRECTORY) != 0 && !S_ISDIR(step.status.st_mode))
        throw SystemFailure(ENOTDIR, "cannot open " + escape_for_display(path));
    if ((flags & O_PATH) != 0) return std::move(step.fd);
    return reopen(step, flags & ~O_NOFOLLOW);
}

ResolvedPath resolve_trusted(const std::string &path, const std::string &what)
{
    ResolvedPath resolved;
    const auto step = walk_path(path, [&](const PathStep &holder, const PathStep &entry) {
        require_only_root_can_change(what, path, holder, entry);
        if (S_ISLNK(entry.status.st_mode)) resolved.links[entry.path] = link_target(entry.fd, entry.path);
    });
    resolved.canonical = step.path;
    resolved.is_directory = S_ISDIR(step.status.st_mode);
    return resolved;
}

std::string read_trusted_file(const std::string &path, std::size_t limit, const std::string &what)
{
    const auto step = walk_trusted(path, what);
    if (!S_ISREG(step.status.st_mode))
        throw Failure(ExitStatus::configuration, fmt::format("the {} {} is not a regular file", what, escape_for_display(path)));
    return read_whole(reopen(step, O_RDONLY | O_NONBLOCK), limit, fmt::format("the {} {}", what, escape_for_display(path)));
}

std::vector<std::string> list_trusted_directory(const std::string &path, const std::string &suffix, const std::string &what)
{
    const auto fd = if_there([&] { return open_trusted(path, O_RDONLY | O_DIRECTORY, what); });
    if (!fd) return {};
    auto names = names_in(fd, escape_for_display(path));
    std::erase_if(names,
                  [&](const std::string &name) { return name.size() <= suffix.size() || !name.ends_with(suffix) || name.front() == '.'; });
    std::sort(names.begin(), names.end());
    return names;
}

} // namespace pi_agent
