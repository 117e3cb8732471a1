// Where a user's agents can have written, opening paths there as the user, and project roots.
#include "common/as_user/user_paths.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>
#include <linux/openat2.h>

#include <climits>
#include <deque>

namespace pi_agent {

namespace {

// Under the scope `project` any directory below a root may have been the one that was shown, and path patterns count from there.
bool fits_from_somewhere(const std::string &pattern, std::string path, ProjectScope scope)
{
    while (!is_masked_by(pattern, path)) {
        const std::size_t slash = path.find('/');
        if (scope == ProjectScope::root || slash == std::string::npos) return false;
        path.erase(0, slash + 1);
    }
    return true;
}

constexpr int step_flags = O_PATH | O_NOFOLLOW;

// The agent does not see what is mounted in a root, but can still rename the directory below that mount.
UniqueFd step_inside(FdRef directory, const std::string &name)
{
    constexpr std::uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return open_resolved(directory, name, step_flags, resolve | (defence_is_on("mounts-in-roots") ? RESOLVE_NO_XDEV : 0));
}

UserPlacePtr host_top()
{
    auto top = std::make_shared<UserPlace>();
    top->path = "/";
    top->fd = open_or_throw("opening /", "/", step_flags | O_DIRECTORY);
    top->facts = examine(top->fd, "opening /");
    return top;
}

// One walk along a path.
class Walk {
public:
    Walk(const AgentPlaces &places, UserPlacePtr from, const std::string &path) : places_(places), current_(std::move(from))
    {
        const std::vector<std::string> parts = path_components(path);
        pending_.assign(parts.begin(), parts.end());
    }

    UserPlacePtr run()
    {
        while (!pending_.empty()) {
            const std::string name = std::move(pending_.front());
            pending_.pop_front();
            if (name == ".." && current_->written_by != nullptr)
                step_back();
            else
                step(name);
        }
        return current_;
    }

    [[nodiscard]] const AgentPlace *written_by() const noexcept { return current_->written_by; }

private:
    void step(const std::string &name)
    {
        const bool inside = current_->written_by != nullptr;
        auto next = std::make_shared<UserPlace>();
        next->path = path_of_step(current_->path, name);
        next->fd = inside ? step_inside(current_->fd, name) : open_step(current_->fd.get(), name);
        if (!next->fd && inside) refuse_step(next->path);
        if (!next->fd || fstat(next->fd.get(), &next->facts) != 0) throw_errno("opening");
        if (S_ISLNK(next->facts.st_mode)) return follow_link(*next);
        if (inside && is_masked(places_, next->path))
            throw NotFollowed("the policy masks " + escape_for_display(next->path) + " (projects.mask)", true);
        enter(std::move(next), inside);
    }

    [[noreturn]] void refuse_step(const std::string &path) const
    {
        const int problem = errno;
        if (problem == EMFILE || problem == ENFILE || problem == ENOMEM) throw_errno("opening");
        if (problem == EXDEV)
            throw NotFollowed("another file system is mounted at " + escape_for_display(path) + ", inside " +
                                  escape_for_display(current_->written_by->path) +
                                  ", where agents write but do not see that file system; put a copy elsewhere",
                              true);
        throw NotFollowed(SystemFailure(problem, "opening " + escape_for_display(path)).what(), false);
    }

    void enter(std::shared_ptr<UserPlace> next, bool inside)
    {
        const AgentPlace *own = S_ISDIR(next->facts.st_mode) ? place_at(next->facts) : nullptr;
        if (own != nullptr) { // also from another one: an agent of this one may see no more than this one
            next->written_by = own;
            next->path = own->path; // for masks and messages: a bind mount of it is the same place
            floor_.reset();
        } else if (inside) {
            next->written_by = current_->written_by;
            next->above = current_;
        }
        current_ = std::move(next);
    }

    [[nodiscard]] const AgentPlace *place_at(const struct stat &facts) const
    {
        if (!defence_is_on("stay-in-root")) return nullptr;
        const auto found = std::find_if(places_.places.begin(), places_.places.end(), [&](const AgentPlace &place) {
            return place.device == facts.st_dev && place.inode == facts.st_ino;
        });
        return found == places_.places.end() ? nullptr : &*found;
    }

    void step_back()
    {
        if (current_->above == nullptr || current_ == floor_) refuse();
        current_ = current_->above;
    }

    void follow_link(const UserPlace &link)
    {
        if (++links_ > most_links) refuse_loop(link.path);
        const std::string target = link_target(link.fd, link.path);
        std::vector<std::string> parts = path_components(target);
        if (current_->written_by == nullptr) {
            require_own_link(link);
            if (target.front() == '/') current_ = host_top();
        } else {
            last_link_ = link.path;
            last_target_ = target;
            // Whoever wrote this link could see its neighbours, and perhaps no other part of the root.
            if (places_.scope == ProjectScope::project && defence_is_on("links-in-projects")) floor_ = current_;
            if (target.front() == '/') parts = parts_below_floor(parts);
        }
        pending_.insert(pending_.begin(), parts.begin(), parts.end());
    }

    [[noreturn]] void refuse_loop(const std::string &path) const
    {
        if (current_->written_by == nullptr || !defence_is_on("agents-loops")) throw SystemFailure(ELOOP, "opening");
        throw NotFollowed("more than " + std::to_string(most_links) + " symlinks are on the path, perhaps in a loop; the last is " +
                              escape_for_display(path) + ", where an agent can have made it",
                          false);
    }

    // The same rule as fs.protected_symlinks: in a directory for everybody, links of others are traps.
    void require_own_link(const UserPlace &link) const
    {
        constexpr mode_t for_all = S_ISVTX | S_IWOTH;
        const struct stat &holder = current_->facts;
        if ((holder.st_mode & for_all) == for_all && link.facts.st_uid != geteuid() && link.facts.st_uid != holder.st_uid)
            throw SystemFailure(EACCES, "opening");
    }

    // Follows an absolute target only if its text is below this directory, and from there: it looks at nothing outside.
    std::vector<std::string> parts_below_floor(const std::vector<std::string> &parts)
    {
        while (current_ != floor_ && current_->above != nullptr)
            current_ = current_->above;
        const std::vector<std::string> own = path_components(current_->path);
        if (parts.size() < own.size() || !std::equal(own.begin(), own.end(), parts.begin())) refuse();
        return {parts.begin() + static_cast<std::ptrdiff_t>(own.size()), parts.end()};
    }

    [[noreturn]] void refuse() const
    {
        const std::string &place = floor_ ? floor_->path : current_->written_by->path;
        throw NotFollowed((last_link_.empty() ? "the path leads out of " + escape_for_display(place)
                                              : "the link " + escape_for_display(last_link_) + " leads to " +
                                                    escape_for_display(last_target_) + ", out of " + escape_for_display(place)) +
                              ", where an agent can have made it; remove it, or put a copy in its place",
                          true);
    }

    const AgentPlaces &places_;
    UserPlacePtr current_;
    UserPlacePtr floor_; // higher up than that directory's own
    std::deque<std::string> pending_;
    int links_ = 0;
    std::string last_link_; // in a place of agents'
    std::string last_target_;
};

struct Unusable {
    std::string text;
};

// Directories may be anybody's: the user works there. A link decides where the root is, so only root may have set it.
void judge(const PathStep &holder, const PathStep &entry)
{
    if (!S_ISLNK(entry.status.st_mode) || !defence_is_on("root-links")) return;
    if (entry.status.st_uid == 0 && only_root_can_change(holder)) return;
    throw Unusable{"it is reached through the symlink " + escape_for_display(entry.path) +
                   ", which somebody else than root can change; name the directory that the link leads to"};
}

std::string path_behind(FdRef fd)
{
    std::string path = kernel_path(fd);
    if (path.empty()) throw Failure(ExitStatus::system_failure, "cannot find the path of a descriptor in /proc/self/fd");
    return path;
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
        if (is_same_file(status, directory)) return true;
        if (depth > 0 && is_same_file(status, last)) return false; // ".." of "/" is "/"
        last = status;
        step = open_or_throw("cannot open a directory above the home directory of " + user.name, step, "..", flags);
    }
    return false;
}

// By its real place: a link of root's may lead there.
std::optional<TextProblem> problem_of_secrets_on_host(const std::string &path, const Account &user)
{
    const auto home = open_at(FdRef(AT_FDCWD), user.home, O_PATH | O_DIRECTORY);
    if (const std::string real = home ? path_behind(home) : user.home; path.size() > real.size() && is_within(path, real) && real != "/")
        if (auto problem = problem_of_secrets(std::string_view(path).substr(real.size() + 1))) return problem;
    return problem_of_secrets_anywhere(path);
}

// Where users make these directories themselves, whoever comes first makes one for another user, open to all, and works in it with them.
void require_users_own(const RootSpec &root, const struct stat &directory, const Account &user)
{
    const bool is_own = directory.st_uid == user.uid.value() || directory.st_uid == 0;
    if (root.text.find(users_name) != std::string::npos && !is_own && defence_is_on("users-own-root"))
        throw Unusable{"it belongs to somebody else than " + user.name + " or root"};
}

enum class Use { work, data };

ResolvedRoot resolve(const RootSpec &root, const Account &user, Use use)
{
    if (!is_account_name(user.name) && root.text.find(users_name) != std::string::npos)
        throw Unusable{"your account's name cannot stand in a path"};
    auto step = walk_path(expand_root(root.text, user), judge);
    if (!S_ISDIR(step.status.st_mode)) throw Unusable{"it is not a directory"};
    if (use == Use::work) require_users_own(root, step.status, user); // data may be anybody's
    auto path = path_behind(step.fd);
    if (path == "/" || path == "/home" || path == "/root" || holds_home(step.status, user))
        throw Unusable{"it is " + quote(path) + ", a home directory or one that holds it; name a directory below it"};
    const auto refuse = [&path](const std::optional<TextProblem> &problem, const char *what, bool defence) {
        if (problem && defence) throw Unusable{fmt::format("{} {}, which {}; {}", what, quote(path), problem->text, problem->remedy)};
    };
    refuse(problem_of_place(path), "it is", defence_is_on("root-place-early"));
    if (!root.state_dir.empty()) refuse(problem_beside_state(path, root.state_dir), "it is", defence_is_on("root-place-early"));
    refuse(problem_of_secrets_on_host(path, user), "it is", defence_is_on("root-secrets"));
    if (root.at_own_path) refuse(problem_of_root_in_unit(path), "it leads to", defence_is_on("root-alphabet"));
    return {std::move(path), std::move(step.fd)};
}

// Whether its user can start in other roots without this one: it does not exist, and no rules of its own have to hold in it. Those would
// have to as soon as somebody makes it, maybe inside of another root, in a session that began before.
bool may_be_absent(const RootSpec &root, bool is_gone) noexcept
{
    return is_gone && root.rules == nullptr;
}

// What the walk could not open, and what to do, in the words of whoever may read it: the user or the administrator.
std::string unreachable(const RootSpec &root, const SystemFailure &failure, const Account &user)
{
    const std::string path = expand_root(root.text, user);
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

} // namespace

bool is_masked(const AgentPlaces &places, const std::string &path)
{
    if (!defence_is_on("masked-config")) return false;
    return std::any_of(places.masks.begin(), places.masks.end(), [&](const PolicyPath &mask) {
        return std::any_of(places.places.begin(), places.places.end(), [&](const AgentPlace &place) {
            return path.size() > place.path.size() && is_within(path, place.path) &&
                   fits_from_somewhere(mask.path, path.substr(place.path.size() + 1), places.scope);
        });
    });
}

UserPlacePtr UserPaths::follow(const std::string &path) const
{
    if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos) throw SystemFailure(EINVAL, "opening");
    return Walk(places_, host_top(), path).run();
}

UserPlacePtr UserPaths::follow(UserPlacePtr from, const std::string &path) const
{
    return Walk(places_, std::move(from), path).run();
}

const AgentPlace *UserPaths::entered_by(const std::string &path) const
{
    Walk walk(places_, host_top(), path);
    try {
        walk.run();
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): as far as it came
    }
    return walk.written_by();
}

std::variant<ResolvedRoot, RootProblem> resolve_root(const RootSpec &root, const Account &user)
{
    const auto problem = [&root](const std::string &text) {
        return RootProblem{root.where, "the root " + quote(root.text) + " cannot be used: " + text};
    };
    if (const auto wrong = problem_of_root(root.text)) return problem("it " + wrong->text + "; " + wrong->remedy);
    try {
        return resolve(root, user, Use::work);
    } catch (const Unusable &refusal) {
        return problem(refusal.text);
    } catch (const SystemFailure &failure) {
        return RootProblem{root.where, unreachable(root, failure, user), failure.error_number() == ENOENT};
    }
}

std::variant<ResolvedRoot, std::string> resolve_shared_data(const RootSpec &place, const Account &user)
{
    try {
        ResolvedRoot found = resolve(place, user, Use::data);
        if (const auto problem = problem_of_shared_data(found.path)) return "it leads to " + quote(found.path) + ", which " + problem->text;
        return found;
    } catch (const Unusable &refusal) {
        return refusal.text;
    } catch (const SystemFailure &failure) {
        return failure.error_number() == ENOENT ? std::string("it does not exist") : failure.what();
    }
}

void require_roots(const AccessRules &rules, const std::vector<std::optional<RootProblem>> &problems)
{
    std::vector<Diagnostic> absent;
    for (std::size_t index = 0; index < problems.size(); ++index) {
        if (!problems[index]) continue;
        absent.push_back({problems[index]->where, rules.entry + ".roots", problems[index]->text, ""});
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
    return text == "~" ? home : (home == "/" ? "" : home) + text.substr(1);
}

std::string expand_root(const std::string &text, const Account &user)
{
    return with_users_name(expand_home(text, user), user.name);
}

} // namespace pi_agent
