// Places that agents write in, and the walk of a user's paths.
#include "common/as_user/user_paths.hpp"

#include "common/as_user/root_path.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"

#include <deque>
#include <filesystem>
#include <linux/openat2.h>

namespace pi_agent {

// Roots and the agents' state as places that agents write in.

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

} // namespace

std::vector<AgentPlace> find_roots(const AccessRules &rules, const Account &user)
{
    std::vector<AgentPlace> roots;
    for (const auto &granted : rules.roots) {
        auto resolved = resolve_root(granted.spec, user);
        const auto *root = std::get_if<ResolvedRoot>(&resolved);
        if (root == nullptr) continue;
        const struct stat facts = examine(root->fd, "examining " + escape_for_display(root->path));
        roots.push_back({root->path, facts.st_dev, facts.st_ino});
    }
    return roots;
}

AgentPlaces find_agent_places(const Policy &policy, const AccessRules &rules, const Account &user)
{
    AgentPlaces places = places_of_state(policy, rules);
    for (auto &root : find_roots(rules, user))
        places.places.push_back(std::move(root));
    return places;
}

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

// The walk of a user's paths.

namespace {

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

} // namespace

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

UniqueFd open_working_directory(const std::string &path)
{
    UniqueFd directory = open_at(FdRef(AT_FDCWD), path, O_PATH | O_DIRECTORY);
    if (directory) return directory;
    if (errno != EACCES) throw_errno(path == "." ? "opening the working directory" : "cannot open " + escape_for_display(path));
    std::error_code unknown; // the kernel still knows the path, unless the directory was deleted
    const std::string shown = path == "." ? std::filesystem::current_path(unknown).string() : path;
    throw Failure(FailureKind::directory, "denied: you may not enter " +
                                              (shown.empty() ? "the working directory" : escape_for_display(shown)) +
                                              "; cd to a directory that you may enter");
}

std::string path_of_working_directory(FdRef directory)
{
    struct stat facts = examine(directory, "examining the working directory");
    if (facts.st_nlink == 0) throw Failure(FailureKind::directory, "denied: the working directory was deleted; cd to one that exists");
    std::string path = kernel_path(directory);
    if (path.empty())
        throw Failure(FailureKind::directory,
                      "denied: the path of the working directory is longer than 4,096 bytes, or leads out of what this "
                      "shell sees; cd to a directory higher up");
    if (fstatat(directory.get(), ".", &facts, 0) != 0)
        throw Failure(FailureKind::directory,
                      "denied: you may not enter " + escape_for_display(path) + "; cd to a directory that you may enter");
    return path;
}

} // namespace pi_agent
