// Re-opens the claimed working directory and the granted roots in a child that is the caller, and decides in the parent.
#include "runner/as_user/project.hpp"

#include "common/base/escape.hpp"
#include "common/decide/root_path.hpp"
#include "common/host/path_walk.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/defence.hpp"
#include "runner/as_user/repository.hpp"
#include "runner/wire/answer.hpp"

#include <algorithm>
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

std::string path_of(FdRef fd)
{
    std::string path = kernel_path(fd);
    if (path.empty())
        throw Failure(ExitStatus::denied,
                      "denied: the path of the working directory is longer than 4,096 bytes, or leads to nowhere on this host; "
                      "cd to a directory higher up");
    return path;
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
void judge_place(const RootCandidate &root, const AccessRules &rules, const HostView &view, ProjectPaths paths)
{
    if (!defence_is_on("root-place")) return;
    const auto refuse = [&](const std::string &problem, const std::string &remedy) {
        throw PolicyError({Diagnostic{root.where, rules.entry + ".roots",
                                      "the root is really " + escape_for_display(root.path) + ", which " + problem, remedy}});
    };
    if (const auto problem = problem_of_place(root.path)) refuse(problem->text, problem->remedy);
    if (paths == ProjectPaths::alias) return; // the unit does not name it
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

constexpr std::ptrdiff_t levels_limit = 128;

// The roots of the caller as they were opened.
struct OpenedRoots {
    std::vector<RootCandidate> candidates;
    std::vector<UniqueFd> descriptors;
    std::vector<std::uint64_t> mounts;
};

std::string beneath(const std::string &path, const std::string &directory)
{
    return path.size() > directory.size() ? path.substr(directory.size() + 1) : std::string();
}

// Only the root is named in the unit, and only at its own path.
void judge_root(const RootCandidate &root, const AccessRules &rules, const HostView &view, ProjectPaths paths)
{
    if (paths == ProjectPaths::host && !is_property_safe(root.path) && defence_is_on("root-alphabet"))
        throw PolicyError({Diagnostic{
            root.where, rules.entry + ".roots",
            "the root is really " + escape_for_display(root.path) + ", a name that cannot be given to systemd",
            "rename it to use only letters, digits and / _ . : = @ -, or show projects under an alias (projects.paths: alias)"}});
    judge_place(root, rules, view, paths);
}

// Each directory on the way to what is shown is made in memory that all sessions share, and removed again.
void require_few_levels(const ShownTree &tree)
{
    if (std::count(tree.inside.begin(), tree.inside.end(), '/') < levels_limit) return;
    throw Failure(ExitStatus::limit, "limit: " + escape_for_display(tree.path()) + " lies more than " + std::to_string(levels_limit) +
                                         " directories below its root, and cannot be shown alone (projects.scope: project)");
}

std::string not_shown(const GitDirectory &place, const std::string &why)
{
    return "git's own directory of this project, " + escape_for_display(place.told) + ", is not shown to the agent: " + why +
           "; git will not work in this session";
}

// A git directory that lies elsewhere is shown where the caller may have an agent anyway.
void add_git_directory(OpenedProject &project, GitDirectory place, OpenedRoots &roots, const AccessRules &rules, const HostView &view,
                       ProjectPaths paths)
{
    const auto leave_out = [&](const std::string &why) {
        if (project.notices.empty()) project.notices.push_back(not_shown(place, why)); // both are of one repository
    };
    if (!place.directory) return leave_out(place.problem);
    const std::string path = path_of(place.directory);
    const auto holds = [&](const ShownTree &tree) { return is_within(path, tree.path()); };
    if (holds(project.shown) || std::any_of(project.git_directories.begin(), project.git_directories.end(), holds)) return;
    if (!place.problem.empty()) return leave_out(place.problem);
    if (is_within(project.shown.path(), path)) return leave_out("the project lies in it");
    if (paths == ProjectPaths::alias) return leave_out("it lies outside of the project, and projects.paths is 'alias'");
    std::optional<std::size_t> best;
    for (std::size_t index = 0; index < roots.candidates.size(); ++index)
        if (is_within(path, roots.candidates[index].path) &&
            (!best || roots.candidates[index].path.size() > roots.candidates[*best].path.size()))
            best = index;
    if (!best) return leave_out("it lies in none of your project roots; ask the administrator to make a directory that holds it a root");
    const RootCandidate &root = roots.candidates[*best];
    if (roots.mounts[*best] != place.mount) return leave_out("it lies on another file system, mounted inside the root " + root.path);
    const std::string &own = project.shown.root_path;
    if (root.path != own && (is_within(root.path, own) || is_within(own, root.path)))
        return leave_out("its root " + root.path + " and that of the project, " + own + ", lie in each other");
    if (root.path != own) judge_root(root, rules, view, paths);
    // The main repository's directory holds the worktree's own.
    project.git_directories.erase(std::remove_if(project.git_directories.begin(), project.git_directories.end(),
                                                 [&](const ShownTree &tree) { return is_within(tree.path(), path); }),
                                  project.git_directories.end());
    project.git_directories.push_back(ShownTree{root.path, beneath(path, root.path), std::move(place.directory), root.by_group});
    require_few_levels(project.git_directories.back());
}

} // namespace

bool is_at_its_path(const ShownTree &tree)
{
    return path_of(tree.directory) == tree.path();
}

std::vector<const ShownTree *> OpenedProject::trees() const
{
    std::vector<const ShownTree *> all{&shown};
    for (const auto &tree : git_directories)
        all.push_back(&tree);
    return all;
}

std::string ShownTree::path() const
{
    return inside.empty() ? root_path : root_path + "/" + inside;
}

std::string OpenedProject::directory() const
{
    return below.empty() ? shown.path() : join_path(shown.path(), below);
}

std::string OpenedProject::repository_path() const
{
    if (!repository) return "";
    return repository->empty() ? shown.path() : join_path(shown.path(), *repository);
}

// First the working directory, then each root in order, then what git says of the directory.
void open_as_caller(const Account &caller, const AccessRules &rules, FdRef claimed_cwd, FdRef channel)
{
    const UniqueFd cwd = reopen_cwd(claimed_cwd);
    const Place place = place_of(cwd);
    send_answer(channel, Encoder().number(place.device).number(place.inode).number(place.mount).bytes(), {cwd.get()});
    for (const auto &granted : rules.roots) {
        auto resolved = resolve_root(granted.spec, caller);
        if (const auto *problem = std::get_if<RootProblem>(&resolved))
            throw PolicyError({unusable_root(rules, problem->where, problem->text)});
        const ResolvedRoot &root = std::get<ResolvedRoot>(resolved);
        struct stat facts {};
        if (fstat(root.fd.get(), &facts) != 0) throw_errno("examining a root");
        send_answer(channel, Encoder().number(place_of(root.fd).mount).number(facts.st_dev).number(facts.st_ino).bytes(), {root.fd.get()});
    }
    send_repository(channel, find_repository(cwd));
}

std::variant<OpenedProject, Refused> open_project(Child &child, const Account &caller, const AccessRules &rules, const HostView &view,
                                                  const ProjectsPolicy &projects)
{
    Packet answer = child.receive();
    UniqueFd cwd = only_descriptor(answer);
    Decoder decoder(answer.bytes);
    OpenedProject project;
    project.cwd_device = decoder.number();
    project.cwd_inode = decoder.number();
    const std::uint64_t cwd_mount = decoder.number();

    OpenedRoots roots;
    for (const auto &granted : rules.roots) {
        Packet packet = child.receive();
        roots.descriptors.push_back(only_descriptor(packet));
        Decoder facts(packet.bytes);
        roots.mounts.push_back(facts.number());
        roots.candidates.push_back(RootCandidate{path_of(roots.descriptors.back()), granted.by_group, granted.spec.where});
        project.roots.push_back({roots.candidates.back().path, facts.number(), facts.number()});
    }
    std::optional<Repository> repository = receive_repository(child);
    // The paths come from the descriptors, not from the child: what is decided on is what will be mounted.
    const std::string cwd_path = path_of(cwd);
    auto decision = decide(caller, rules, roots.candidates, cwd_path);
    if (auto *refused = std::get_if<Refused>(&decision)) return *refused;
    const std::size_t allowed = std::get<Allowed>(decision).root;
    const RootCandidate &root = roots.candidates[allowed];
    if (roots.mounts[allowed] != cwd_mount && defence_is_on("cwd-mount")) return on_other_mount(root, cwd_path);
    judge_root(root, rules, view, projects.paths);

    const std::string top = repository ? path_of(repository->top) : std::string();
    const bool in_repository = repository && is_within(top, root.path) && is_within(cwd_path, top) && repository->mount == cwd_mount;
    if (projects.scope == ProjectScope::root || !defence_is_on("project-scope"))
        project.shown = ShownTree{root.path, "", std::move(roots.descriptors[allowed]), root.by_group};
    else if (in_repository)
        project.shown = ShownTree{root.path, beneath(top, root.path), std::move(repository->top), root.by_group};
    else
        project.shown = ShownTree{root.path, beneath(cwd_path, root.path), std::move(cwd), root.by_group};
    require_few_levels(project.shown);
    project.below = beneath(cwd_path, project.shown.path());
    if (!in_repository) return project;
    project.repository = beneath(top, project.shown.path());
    for (auto &place : repository->elsewhere)
        add_git_directory(project, std::move(place), roots, rules, view, projects.paths);
    return project;
}

} // namespace pi_agent
