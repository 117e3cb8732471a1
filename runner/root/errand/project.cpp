// Decides where a session works, on descriptors alone.
#include "runner/root/errand/project.hpp"

#include "common/base/problems.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"
#include "runner/wire/user_files.hpp"

#include <algorithm>
#include <fcntl.h>

namespace pi_agent {

namespace {

// The kernel reports the path, after the reader opened the root. A rename in between can change it, so it is judged here and not only by
// the reader. The unit names only the root, and only at its own path. Below the host's own trees, which the agent sees, systemd resolves
// that path again while the session runs, and only root may be able to exchange a component there (a symlink there once made root run the
// project's own program).
void judge_root(const RootCandidate &root, const AccessRules &rules, const HostView &view, ProjectPaths paths)
{
    const auto refuse = [&](const std::string &problem, const std::string &remedy) {
        throw PolicyError(
            {Diagnostic{root.where, rules.entry + ".roots", "the root leads to " + escape_for_display(root.path) + ", " + problem, remedy}},
            FailureKind::user_root);
    };
    if (paths == ProjectPaths::host && !is_property_safe(root.path) && defence_is_on("root-alphabet"))
        refuse("a name that systemd does not accept",
               "rename it to use only letters, digits and / _ . : = @ -, or show projects under an alias (projects.paths: alias)");
    if (!defence_is_on("root-place")) return;
    if (const auto problem = problem_of_place(root.path)) refuse("which " + problem->text, problem->remedy);
    // Every root of a policy knows where its state is, and this is one of them.
    if (const auto &state_dir = rules.roots.front().spec.state_dir; !state_dir.empty())
        if (const auto problem = problem_beside_state(root.path, state_dir)) refuse("which " + problem->text, problem->remedy);
    if (paths == ProjectPaths::alias) return; // the unit does not name it
    if (root.path.find(':') != std::string::npos) refuse("whose name contains a colon, where systemd would split it", "rename it");
    if (!is_shown(view, root.path)) return;
    try {
        open_trusted(root.path.substr(0, root.path.rfind('/')), O_PATH | O_DIRECTORY, "directory that holds a root");
    } catch (const Failure &failure) {
        refuse(std::string("which others could replace while a session runs: ") + failure.what(), "move it below /srv or a home");
    }
}

constexpr std::ptrdiff_t levels_limit = 128;

// The caller's roots as they were opened.
struct OpenedRoots {
    std::vector<RootCandidate> candidates;
    std::vector<UniqueFd> descriptors;
    std::vector<std::uint64_t> mounts;
};

std::string beneath(const std::string &path, const std::string &directory)
{
    return path.size() > directory.size() ? path.substr(directory.size() + 1) : std::string();
}

// Each directory on the way to what is shown occupies memory that all sessions share, and must be removed again.
void require_few_levels(const ShownTree &tree)
{
    if (std::count(tree.inside.begin(), tree.inside.end(), '/') < levels_limit) return;
    throw Failure(FailureKind::too_large, "limit: " + escape_for_display(tree.path()) + " lies more than " + std::to_string(levels_limit) +
                                              " directories below its root, too deep to be shown alone (projects.scope: project); ask the "
                                              "administrator for a root nearer to it");
}

void require_unmasked(const ProjectsPolicy &projects, const std::string &top, const std::string &cwd)
{
    if (const auto refused = masked_start(projects, top, cwd)) throw Failure(FailureKind::masked, refused->text);
}

// A git directory elsewhere is shown only where the caller may have an agent anyway.
void add_git_directory(OpenedProject &project, GitDirectory place, OpenedRoots &roots, const AccessRules &rules, const HostView &view,
                       const ProjectsPolicy &projects)
{
    const auto leave_out = [&](const std::string &why) {
        if (!project.notices.empty()) return; // both belong to one repository
        project.notices.push_back("git's own directory of this project, " + escape_for_display(place.told) +
                                  ", is not shown to the agent: " + why + "; git will not work in this session");
    };
    if (!place.directory) return leave_out(place.problem);
    const std::string path = path_of_directory(place.directory);
    const auto holds = [&](const ShownTree &tree) { return is_within(path, tree.path()); };
    if (holds(project.shown) || std::any_of(project.git_directories.begin(), project.git_directories.end(), holds)) return;
    if (!place.problem.empty()) return leave_out(place.problem);
    if (is_within(project.shown.path(), path)) return leave_out("the project is in it");
    if (projects.paths == ProjectPaths::alias) return leave_out("it is outside of the project, and projects.paths is 'alias'");
    std::optional<std::size_t> best;
    for (std::size_t index = 0; index < roots.candidates.size(); ++index)
        if (is_within(path, roots.candidates[index].path) &&
            (!best || roots.candidates[index].path.size() > roots.candidates[*best].path.size()))
            best = index;
    if (!best) return leave_out("it is in none of your project roots; ask the administrator to make a directory that holds it a root");
    const RootCandidate &root = roots.candidates[*best];
    if (roots.mounts[*best] != place.mount) return leave_out("it lies on another file system, mounted inside the root " + root.path);
    const PolicyPath *mask = mask_over(projects.mask, beneath(path, root.path));
    if (mask != nullptr && defence_is_on("masked-git-directories"))
        return leave_out("the policy masks what holds it (projects.mask: " + quote(mask->path) + ")");
    const std::string &own = project.shown.root_path;
    if (root.rules != roots.candidates[project.root].rules && root.rules && defence_is_on("root-rules"))
        return leave_out("its root " + root.path + " has rules of its own (" + to_string(root.where) +
                         "), which this session does not keep");
    if (root.path != own && are_nested(root.path, own))
        return leave_out("its root " + root.path + " and the project's root " + own + " are one inside the other");
    if (root.path != own) judge_root(root, rules, view, projects.paths);
    // The main repository's directory holds the worktree's own.
    std::erase_if(project.git_directories, [&](const ShownTree &tree) { return is_within(tree.path(), path); });
    project.git_directories.push_back(ShownTree{root.path, beneath(path, root.path), std::move(place.directory), root.by_group});
    require_few_levels(project.git_directories.back());
}

} // namespace

bool is_at_its_path(const ShownTree &tree)
{
    return path_of_directory(tree.directory) == tree.path();
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

std::variant<OpenedProject, Refused> open_project(Child &child, const Account &caller, const AccessRules &all, const HostView &view,
                                                  const ProjectsIn &projects_in)
{
    auto [cwd, cwd_facts] = decode_place(child.receive());
    OpenedProject project;
    project.cwd_device = cwd_facts.device;
    project.cwd_inode = cwd_facts.inode;

    const AccessRules rules = with_roots_there(all, decode_roots_there(child.receive(), all.roots.size()));
    OpenedRoots roots;
    for (const auto &granted : rules.roots) {
        OpenedPlace place = decode_place(child.receive());
        roots.candidates.push_back(
            RootCandidate{path_of_directory(place.directory), granted.by_group, granted.spec.where, granted.spec.rules});
        project.roots.push_back({roots.candidates.back().path, place.facts.device, place.facts.inode});
        roots.mounts.push_back(place.facts.mount);
        roots.descriptors.push_back(std::move(place.directory));
    }
    std::optional<Repository> repository = decode_repository(child.receive());
    // The paths come from the descriptors, not from the child: the decision is about exactly what will be mounted.
    const std::string cwd_path = path_of_directory(cwd);
    auto decision = decide(caller, rules, roots.candidates, cwd_path);
    if (auto *refused = std::get_if<Refused>(&decision)) return *refused;
    const std::size_t allowed = std::get<Allowed>(decision).root;
    const RootCandidate &root = roots.candidates[allowed];
    project.root = allowed;
    const ProjectsPolicy projects = projects_in(rules.roots[allowed].spec);
    if (roots.mounts[allowed] != cwd_facts.mount && defence_is_on("cwd-mount")) return on_other_mount(root, cwd_path);
    judge_root(root, rules, view, projects.paths);
    for (std::size_t index = 0; index < roots.candidates.size(); ++index) {
        const RootCandidate &other = roots.candidates[index];
        if (other.rules && other.rules != root.rules && other.path != root.path && is_within(other.path, root.path))
            project.closed.push_back(project.roots[index]);
    }

    const std::string top = repository ? path_of_directory(repository->top) : std::string();
    const bool in_repository = repository && is_within(top, root.path) && is_within(cwd_path, top) && repository->mount == cwd_facts.mount;
    require_unmasked(projects, root.path, cwd_path);
    if (projects.shown() == ProjectScope::root || !defence_is_on("project-scope"))
        project.shown = ShownTree{root.path, "", std::move(roots.descriptors[allowed]), root.by_group};
    else if (in_repository)
        project.shown = ShownTree{root.path, beneath(top, root.path), std::move(repository->top), root.by_group};
    else
        project.shown = ShownTree{root.path, beneath(cwd_path, root.path), std::move(cwd), root.by_group};
    require_few_levels(project.shown);
    require_unmasked(projects, project.shown.path(), cwd_path);
    if (!project.shown.inside.empty()) project.root_directory = std::move(roots.descriptors[allowed]);
    project.below = beneath(cwd_path, project.shown.path());
    if (!in_repository) return project;
    project.repository = beneath(top, project.shown.path());
    for (auto &place : repository->elsewhere)
        add_git_directory(project, std::move(place), roots, rules, view, projects);
    return project;
}

} // namespace pi_agent
