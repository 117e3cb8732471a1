// Re-opens the claimed working directory and the granted roots in a child that is the caller, and decides in the parent.
#include "runner/project.hpp"

#include "common/defence.hpp"
#include "common/escape.hpp"
#include "common/policy_paths.hpp"
#include "common/root_path.hpp"
#include "common/trusted_file.hpp"

#include <array>
#include <climits>
#include <cstdint>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

namespace {

struct Place {
    std::uint64_t device;
    std::uint64_t inode;
    std::uint64_t mount;
};

Place place_of(FdRef fd)
{
    struct statx facts {};
    if (statx(fd.get(), "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID, &facts) != 0)
        throw_errno("examining the working directory");
    if ((facts.stx_mask & STATX_MNT_ID) == 0)
        throw Failure(ExitStatus::unavailable, "this kernel does not tell mount ids (Linux 5.8 does)");
    const std::uint64_t device = (static_cast<std::uint64_t>(facts.stx_dev_major) << 32U) | facts.stx_dev_minor;
    return Place{device, facts.stx_ino, facts.stx_mnt_id};
}

// The kernel's own text for a descriptor: canonical, without symbolic links.
std::string path_of(FdRef fd)
{
    std::array<char, PATH_MAX> buffer{};
    const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), buffer.data(), buffer.size());
    if (length <= 0 || static_cast<std::size_t>(length) >= buffer.size() || buffer[0] != '/')
        throw Failure(ExitStatus::denied, "denied: the working directory has no path on this host");
    return std::string(buffer.data(), static_cast<std::size_t>(length));
}

UniqueFd open_directory_without_links(const std::string &path)
{
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return UniqueFd::adopt(static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

UniqueFd reopen_cwd(FdRef claimed)
{
    const std::string path = path_of(claimed);
    UniqueFd actual = open_directory_without_links(path);
    if (!actual)
        throw Failure(ExitStatus::denied, "denied: the working directory " + escape_for_display(path) + " cannot be opened by its path (" +
                                              SystemFailure(errno, "open").what() + "); was it deleted or renamed? cd to it again");
    const Place told = place_of(claimed);
    const Place found = place_of(actual);
    const bool same = told.device == found.device && told.inode == found.inode && told.mount == found.mount;
    if (!same && defence_is_on("cwd-identity"))
        throw Failure(ExitStatus::denied, "denied: the working directory is not the one that " + escape_for_display(path) +
                                              " names on this host; cd to it again in an ordinary shell");
    struct stat searched {};
    if (fstatat(actual.get(), ".", &searched, 0) != 0 && defence_is_on("cwd-searchable"))
        throw Failure(ExitStatus::denied, "denied: you may not enter " + escape_for_display(path));
    return actual;
}

// The path is the kernel's, read after the reader opened the root, so a rename in between chooses it: it is judged here and not only by the
// reader. Below the host's own trees, which the agent sees, systemd resolves it again while the session runs, and nobody but root may be
// able to exchange a component there (a link in its place once made root run the project's own program).
void judge_place(const RootCandidate &root, const AccessRules &rules, const HostView &view)
{
    if (!defence_is_on("root-place")) return;
    const auto refuse = [&](const std::string &problem, const std::string &remedy) {
        throw PolicyError({Diagnostic{root.where, rules.entry + ".roots",
                                      "the root is really " + escape_for_display(root.path) + ", which " + problem, remedy}});
    };
    if (const auto problem = problem_of_place(root.path)) refuse(problem->text, problem->remedy);
    if (root.path.find(':') != std::string::npos) refuse("has a colon in its name, and systemd would divide it there", "rename it");
    if (!is_shown(view, root.path)) return;
    try {
        open_trusted(root.path.substr(0, root.path.rfind('/')), O_PATH | O_DIRECTORY, "directory that holds a root");
    } catch (const Failure &failure) {
        refuse(std::string("could be exchanged while a session runs: ") + failure.what(), "move it below /srv or a home");
    }
}

UniqueFd only_descriptor(Packet &packet)
{
    if (packet.fds.size() != 1) throw ProtocolError("the receiver sent the wrong number of descriptors");
    return std::move(packet.fds[0]);
}

} // namespace

// First the working directory, then each root in order.
void open_as_caller(const Account &caller, const AccessRules &rules, FdRef claimed_cwd, FdRef channel)
{
    const UniqueFd cwd = reopen_cwd(claimed_cwd);
    const Place place = place_of(cwd);
    send_answer(channel, Encoder().number(place.device).number(place.inode).number(place.mount).bytes(), {cwd.get()});
    for (const auto &granted : rules.roots) {
        auto resolved = resolve_root(granted.spec, caller);
        if (const auto *problem = std::get_if<RootProblem>(&resolved))
            throw PolicyError({Diagnostic{problem->where, rules.entry + ".roots", problem->text, ""}});
        const ResolvedRoot &root = std::get<ResolvedRoot>(resolved);
        send_answer(channel, Encoder().number(place_of(root.fd).mount).bytes(), {root.fd.get()});
    }
}

std::variant<OpenedProject, Refused> open_project(Child &child, const Account &caller, const AccessRules &rules, const HostView &view)
{
    Packet answer = child.receive();
    const UniqueFd cwd = only_descriptor(answer);
    Decoder decoder(answer.bytes);
    OpenedProject project;
    project.cwd_device = decoder.number();
    project.cwd_inode = decoder.number();
    const std::uint64_t cwd_mount = decoder.number();

    std::vector<RootCandidate> candidates;
    std::vector<UniqueFd> descriptors;
    std::vector<std::uint64_t> mounts;
    for (const auto &granted : rules.roots) {
        Packet packet = child.receive();
        descriptors.push_back(only_descriptor(packet));
        mounts.push_back(Decoder(packet.bytes).number());
        candidates.push_back(RootCandidate{path_of(descriptors.back()), granted.by_group, granted.spec.where});
    }
    // The paths come from the descriptors, not from the child: what is decided on is what will be mounted.
    auto decision = decide(caller, rules, candidates, path_of(cwd));
    if (auto *refused = std::get_if<Refused>(&decision)) return *refused;
    auto &allowed = std::get<Allowed>(decision);
    if (mounts[allowed.root] != cwd_mount && defence_is_on("cwd-mount"))
        return Refused{"denied: " + escape_for_display(path_of(cwd)) + " lies on another file system that is mounted inside the root " +
                       candidates[allowed.root].path +
                       ", and those are not shown to the agent; ask the administrator to make it a root of its own"};
    if (!is_property_safe(candidates[allowed.root].path) && defence_is_on("root-alphabet"))
        throw PolicyError({Diagnostic{candidates[allowed.root].where, rules.entry + ".roots",
                                      "the root is really " + escape_for_display(candidates[allowed.root].path) +
                                          ", a name that cannot be given to systemd",
                                      "rename it to use only letters, digits and / _ . : = @ -"}});
    judge_place(candidates[allowed.root], rules, view);
    project.root_path = candidates[allowed.root].path;
    project.root = std::move(descriptors[allowed.root]);
    project.below = std::move(allowed.below);
    project.by_group = candidates[allowed.root].by_group;
    return project;
}

} // namespace pi_agent
