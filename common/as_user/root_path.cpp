// Opens the roots of a project along the paths that the policy names, and reports what leads out of them.
#include "common/as_user/root_path.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/policy/toolchains.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>

#include <climits>

namespace pi_agent {

namespace {

struct Refusal {
    std::string text;
};

bool only_root_can_change(const struct stat &status) noexcept
{
    return status.st_uid == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Directories may be anybody's: the user works there. A link decides where the root is, so only root may have set it.
void judge(const PathStep &holder, const PathStep &entry)
{
    if (!S_ISLNK(entry.status.st_mode) || !defence_is_on("root-links")) return;
    if (entry.status.st_uid == 0 && only_root_can_change(holder.status)) return;
    throw Refusal{"it is reached through the symlink " + escape_for_display(entry.path) +
                  ", which somebody else than root can change; name the directory that the link leads to"};
}

std::string path_behind(FdRef fd)
{
    std::string path = kernel_path(fd);
    if (path.empty()) throw Failure(ExitStatus::system_failure, "cannot find the path of a descriptor in /proc/self/fd");
    return path;
}

bool is_same(const struct stat &left, const struct stat &right) noexcept
{
    return left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

// True when `directory` is the home of `user` or holds it: compared by identity, so that no bind mount or link hides it.
bool holds_home(const struct stat &directory, const Account &user)
{
    constexpr int flags = O_PATH | O_DIRECTORY;
    auto step = open_at(FdRef(AT_FDCWD), user.home, flags);
    if (!step) return false; // there is no home to give away
    struct stat last {};
    for (int depth = 0; depth < PATH_MAX; ++depth) {
        const struct stat status = examine(step, "cannot examine the home directory of " + user.name);
        if (is_same(status, directory)) return true;
        if (depth > 0 && is_same(status, last)) return false; // ".." of "/" is "/"
        last = status;
        step = open_or_throw("cannot open a directory above the home directory of " + user.name, step, "..", flags);
    }
    return false;
}

// By its real place: a link of root's may lead there.
std::optional<PathProblem> problem_of_secrets_on_host(const std::string &path, const Account &user)
{
    const auto home = open_at(FdRef(AT_FDCWD), user.home, O_PATH | O_DIRECTORY);
    const std::string real = home ? path_behind(home) : user.home;
    if (path.size() > real.size() && is_within(path, real) && real != "/")
        if (auto problem = problem_of_secrets(std::string_view(path).substr(real.size() + 1))) return problem;
    return problem_of_secrets_anywhere(path);
}

ResolvedRoot resolve(const RootSpec &root, const Account &user)
{
    auto step = walk_path(expand_home(root.text, user), judge);
    if (!S_ISDIR(step.status.st_mode)) throw Refusal{"it is not a directory"};
    auto path = path_behind(step.fd);
    if (path == "/" || path == "/home" || path == "/root" || holds_home(step.status, user)) {
        throw Refusal{"it is " + quote(path) + ", a home directory or one that holds it; name a directory below it"};
    }
    if (const auto problem = problem_of_place(path); problem && defence_is_on("root-place-early"))
        throw Refusal{"it is " + quote(path) + ", which " + problem->text + "; " + problem->remedy};
    if (const auto problem = root.state_dir.empty() ? std::nullopt : problem_beside_state(path, root.state_dir);
        problem && defence_is_on("root-place-early"))
        throw Refusal{"it is " + quote(path) + ", which " + problem->text + "; " + problem->remedy};
    if (const auto problem = problem_of_secrets_on_host(path, user); problem && defence_is_on("root-secrets"))
        throw Refusal{"it is " + quote(path) + ", which " + problem->text + "; " + problem->remedy};
    if (const auto problem = problem_of_root_in_unit(path); problem && root.at_own_path && defence_is_on("root-alphabet"))
        throw Refusal{"it leads to " + quote(path) + ", which " + problem->text + "; " + problem->remedy};
    return {std::move(path), std::move(step.fd)};
}

// What the walk could not open, and what to do, in the words of whoever may read it: the user or the administrator.
std::string unreachable(const RootSpec &root, const SystemFailure &failure, const Account &user)
{
    const std::string path = expand_home(root.text, user);
    const std::string name = "the root " + quote(root.text) + (path == root.text ? "" : " (" + escape_for_display(path) + ")");
    if (failure.error_number() == ENOENT)
        return name + " does not exist; create it or remove it from roots" +
               (may_be_absent(root, true)
                    ? ""
                    : ": it has rules of its own, so until then " + user.name + " cannot start pi in other roots either");
    if (failure.error_number() == EACCES)
        return name + " is not accessible to " + user.name +
               "; the owner of a directory above it can let them in (by a group or an access list), or the administrator removes it from "
               "roots: until then " +
               user.name + " cannot start pi anywhere";
    return name + " cannot be used: " + failure.what();
}

constexpr std::size_t depth_limit = 128;

class LinkSearch {
public:
    LinkSearch(const UserPaths &paths, const std::function<bool()> &go_on) : paths_(paths), go_on_(go_on) {}

    void look_at(const std::string &name, const std::function<UserPlacePtr()> &follow)
    {
        if (!go_on_()) return;
        try {
            const UserPlacePtr place = follow();
            if (S_ISDIR(place->facts.st_mode)) look_into(name, place);
        } catch (const NotFollowed &refusal) {
            if (refusal.leads_out()) found_.insert(escape_for_display(name) + ": " + refusal.what());
        } catch (const SystemFailure &) { // NOLINT(bugprone-empty-catch): what cannot be opened leads nowhere
        }
    }

    std::set<std::string> found() { return std::move(found_); }

private:
    void look_into(const std::string &name, const UserPlacePtr &place)
    {
        const auto is_above = [&](const UserPlacePtr &other) {
            return other->facts.st_dev == place->facts.st_dev && other->facts.st_ino == place->facts.st_ino;
        };
        if (above_.size() >= depth_limit || std::any_of(above_.begin(), above_.end(), is_above)) return;
        auto stream = DirectoryStream::reopened(place->fd);
        if (!stream) return;
        above_.push_back(place);
        while (const dirent *entry = stream.next()) {
            const std::string entry_name = entry->d_name;
            if (entry->d_type == DT_REG && place->written_by == nullptr) continue;
            look_at(join_path(name, entry_name), [&] { return paths_.follow(place, entry_name); });
        }
        above_.pop_back();
    }

    const UserPaths &paths_;
    const std::function<bool()> &go_on_;
    std::vector<UserPlacePtr> above_;
    std::set<std::string> found_;
};

} // namespace

std::variant<ResolvedRoot, RootProblem> resolve_root(const RootSpec &root, const Account &user)
{
    const auto problem = [&root](const std::string &text) {
        return RootProblem{root.where, "the root " + quote(root.text) + " cannot be used: " + text};
    };
    if (const auto wrong = problem_of_root(root.text)) return problem("it " + wrong->text + "; " + wrong->remedy);
    try {
        return resolve(root, user);
    } catch (const Refusal &refusal) {
        return problem(refusal.text);
    } catch (const SystemFailure &failure) {
        return RootProblem{root.where, unreachable(root, failure, user), failure.error_number() == ENOENT};
    }
}

bool may_be_absent(const RootSpec &root, bool is_gone) noexcept
{
    return is_gone && root.rules == nullptr;
}

void require_roots(const AccessRules &rules, const std::vector<std::optional<RootProblem>> &problems)
{
    std::vector<Diagnostic> absent;
    for (std::size_t index = 0; index < problems.size(); ++index) {
        if (!problems[index]) continue;
        absent.push_back(unusable_root(rules, problems[index]->where, problems[index]->text));
        if (!may_be_absent(rules.roots[index].spec, problems[index]->is_gone)) throw PolicyError({absent.back()}, FailureKind::user_root);
    }
    if (!absent.empty() && absent.size() == problems.size()) throw PolicyError({absent.front()}, FailureKind::user_root);
}

std::vector<std::optional<ResolvedRoot>> resolve_roots(const AccessRules &rules, const Account &user)
{
    std::vector<std::optional<ResolvedRoot>> roots;
    std::vector<std::optional<RootProblem>> problems;
    for (const auto &granted : rules.roots) {
        auto resolved = resolve_root(granted.spec, user);
        auto *root = std::get_if<ResolvedRoot>(&resolved);
        problems.push_back(root != nullptr ? std::nullopt : std::optional(std::get<RootProblem>(std::move(resolved))));
        roots.push_back(root != nullptr ? std::optional(std::move(*root)) : std::nullopt);
    }
    require_roots(rules, problems);
    return roots;
}

std::string expand_home(const std::string &text, const Account &user)
{
    if (text != "~" && text.substr(0, 2) != "~/") return text;
    auto home = without_trailing_slashes(user.home);
    if (text == "~") return home;
    return (home == "/" ? "" : home) + text.substr(1);
}

std::vector<std::string> paths_read_as_user(const Policy &policy, const AccessRules &rules, const Account &user)
{
    std::vector<std::string> paths{rules.config_directory};
    for (const char *name : {"/.agents/skills", "/.ssh/known_hosts", "/.gitconfig", "/.config/git/config"})
        paths.push_back(user.home + name);
    for (const auto &file : policy.host_env_files)
        paths.push_back(file.front() == '/' ? file : user.home + "/" + file);
    for (const auto *key : {&rules.ssh_key, &rules.signing_key})
        if (*key) paths.push_back(**key);
    return paths;
}

std::set<std::string> find_links_out(const UserPaths &paths, const std::vector<std::string> &tops, const std::function<bool()> &go_on)
{
    LinkSearch search(paths, go_on);
    for (const auto &top : tops)
        search.look_at(top, [&] { return paths.follow(top); });
    return search.found();
}

} // namespace pi_agent
