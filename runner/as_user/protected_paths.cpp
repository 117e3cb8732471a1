// The user's half of `protect` and `mask`.
#include "runner/as_user/protected_paths.hpp"

#include "common/as_user/doors.hpp"

#include <poll.h>

namespace pi_agent {

namespace {

struct Placeholder {
    std::string path;
    Standin standin;
    bool is_target; // must be mounted over; otherwise it is above such a path
};

struct FoundPaths {
    GuardedPaths guarded;
    std::vector<Placeholder> placeholders;
};

class Finder {
public:
    explicit Finder(const GuardedTree &tree) : tree_(tree), names_(tree) {}

    void add(const GuardedPath &wanted)
    {
        const ShownPath place = find_shown(tree_, wanted.base, wanted.path);
        for (const auto &link : place.links)
            add_read_only(link, wanted.is_inner);
        switch (place.kind) {
        case ShownPath::Kind::directory:
            if (wanted.stays) add_once(found_.guarded.kept, place.path);
            if (wanted.stays || wanted.is_way) break;
            [[fallthrough]];
        case ShownPath::Kind::other:
            add_existing(place.path, wanted);
            break;
        case ShownPath::Kind::missing:
            add_missing(place, wanted);
            break;
        case ShownPath::Kind::closed:
            if (defence_is_on("protect-unreadable")) refuse_closed(place.path);
            [[fallthrough]];
        case ShownPath::Kind::unclear:
            found_.guarded.notices.push_back("not protected from the agent, because you cannot look at it: " +
                                             escape_for_display(join_path(join_path(tree_.path, wanted.base), wanted.path)));
            break;
        case ShownPath::Kind::outside:
        case ShownPath::Kind::hidden:
        case ShownPath::Kind::endless:
            break; // not in the agent's view
        }
    }

    FoundPaths take()
    {
        for (auto &notice : names_.notices())
            found_.guarded.notices.push_back(std::move(notice));
        for (const auto &[path, is_inner] : is_inner_)
            if (is_inner) found_.guarded.inner.push_back(path);
        return std::move(found_);
    }

private:
    [[noreturn]] void refuse_closed(const std::string &path) const
    {
        throw Failure(FailureKind::protection, escape_for_display(join_path(tree_.path, path)) +
                                                   " is yours, but you may not enter it; the agent could change that, so its content "
                                                   "cannot be protected (projects.protect); make it accessible for you, or remove it");
    }

    static void add_once(std::vector<std::string> &paths, const std::string &path)
    {
        if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }

    // A path that also belongs to the repository's own git directory does not count as inner. True for a path that was not listed before.
    bool take_path(const std::string &path, bool is_inner)
    {
        const auto [at, is_new] = is_inner_.emplace(path, is_inner);
        at->second = at->second && is_inner;
        return is_new;
    }

    void add_read_only(const std::string &path, bool is_inner)
    {
        if (take_path(path, is_inner)) found_.guarded.read_only.push_back(path);
    }

    void add_placeholder(const std::string &path, Standin standin, bool is_target, bool is_inner)
    {
        if (!take_path(path, is_inner)) return;
        found_.placeholders.push_back({path, standin, is_target});
        found_.guarded.placeholders.push_back(path);
    }

    void add_existing(const std::string &path, const GuardedPath &wanted)
    {
        names_.require(path); // also of another session's placeholder
        const std::string base = wanted.base.empty() ? "" : wanted.base + "/";
        const bool may_be_ours = wanted.standin != Standin::none && path.compare(0, base.size(), base) == 0;
        for (std::size_t slash = path.find('/', base.size()); may_be_ours && slash != std::string::npos; slash = path.find('/', slash + 1))
            adopt(path.substr(0, slash), false, wanted.is_inner);
        if (!may_be_ours || !adopt(path, true, wanted.is_inner)) add_read_only(path, wanted.is_inner);
    }

    // Another session's placeholder, or one that a power cut left: it is used as if this session had made it.
    bool adopt(const std::string &path, bool is_target, bool is_inner)
    {
        const auto standin = find_placeholder(tree_.top, path);
        if (standin) add_placeholder(path, *standin, is_target, is_inner);
        return standin.has_value();
    }

    void add_missing(const ShownPath &place, const GuardedPath &wanted)
    {
        const Standin standin = wanted.standin;
        if (standin == Standin::none || !defence_is_on("protect-missing")) return;
        const std::vector<std::string> names = path_components(place.rest);
        std::string path = place.path;
        for (std::size_t index = 0; index < names.size(); ++index) {
            if (names[index] == "..") return; // leads nowhere as long as what is before it is missing
            path = join_path(path, names[index]);
            const bool last = index + 1 == names.size();
            if (!last && standin != Standin::directory)
                add_placeholder(path, Standin::directory, false, wanted.is_inner);
            else
                return add_placeholder(path, standin, true, wanted.is_inner);
        }
    }

    const GuardedTree &tree_;
    SingleNames names_;
    std::map<std::string, bool> is_inner_; // of what is read-only or gets a placeholder
    FoundPaths found_;
};

FoundPaths find(const GuardedTree &tree, const std::vector<GuardedPath> &wanted)
{
    Finder finder(tree);
    for (const auto &path : wanted)
        finder.add(path);
    return finder.take();
}

// Outside a repository the policy's paths mean only what exists, and nothing is made: it would be among the user's projects.
Standin standin_of(const PolicyPath &path, const GuardedTrees &trees)
{
    if (!trees.repository) return Standin::none;
    return path.is_directory ? Standin::directory : Standin::comment;
}

// What these paths of a root are in the part of it that a start chose to see. Nothing in that part could be written where all of it is
// protected, and there is a way to say that: a start that only reads.
void add_from_root(const GuardedRoot &part, const std::vector<PolicyPath> &protect, std::vector<GuardedPath> &wanted)
{
    for (const auto &path : protect) {
        const ShownPath place = find_shown(part.root, "", path.path);
        std::vector<std::string> found = place.links;
        if (place.kind == ShownPath::Kind::directory || place.kind == ShownPath::Kind::other) found.push_back(place.path);
        for (const auto &one : found) {
            if (is_within(part.inside, one))
                throw Failure(FailureKind::masked,
                              "denied: " + escape_for_display(join_path(part.root.path, part.inside)) +
                                  " is in what the policy protects (projects.protect: " + quote(path.path) + ", " + to_string(path.where) +
                                  "), so a session that shows nothing else (--pi-agent-scope=project) could write nothing; leave the "
                                  "option out, or add --pi-agent-read-only");
            if (is_within(one, part.inside)) wanted.push_back({"", one.substr(part.inside.size() + 1), Standin::none, false, false});
        }
    }
}

Standin standin_of(DoorGuard guard)
{
    if (guard == DoorGuard::comment) return Standin::comment;
    if (guard == DoorGuard::commondir) return Standin::commondir;
    return guard == DoorGuard::directory ? Standin::directory : Standin::none;
}

// Of a path that is usually a file, a directory holds the repository itself, in which the agent works: only its way is guarded.
void add_door(const GuardedTree &tree, const std::string &directory, const std::string &path, DoorGuard guard,
              std::vector<GuardedPath> &wanted)
{
    const std::string first = path.substr(0, path.find('/'));
    if (find_shown(tree, directory, first).kind == ShownPath::Kind::missing) return;
    wanted.push_back({directory, first, Standin::none, true});
    const bool may_be_made = find_shown(tree, directory, split_last(path).first).kind == ShownPath::Kind::directory;
    wanted.push_back({directory, path, may_be_made ? standin_of(guard) : Standin::none, guard != DoorGuard::directory});
}

// What other version control than git takes programs from, in each directory from the top down to `below`. Where a directory on the way is
// missing, nothing stands in: what is in it would be nobody's.
void add_version_control(const GuardedTree &tree, const std::string &below, std::vector<GuardedPath> &wanted)
{
    std::vector<std::string> directories = {""};
    for (const auto &name : path_components(below))
        directories.push_back(join_path(directories.back(), name));
    for (const auto &directory : directories)
        for (const auto &door : door_table)
            if (door.protect != DoorGuard::none)
                for (const auto path : split(door.paths, ' '))
                    add_door(tree, directory, std::string(path), door.protect, wanted);
}

std::vector<GuardedPath> wanted_in_project(const GuardedTrees &trees, const ProjectsPolicy &policy)
{
    std::vector<GuardedPath> wanted;
    if (!policy.protect) wanted = git_executing_paths(trees.project, repositories_above(trees.project, trees.below), protect_limit);
    if (!policy.protect && defence_is_on("protect-version-control")) add_version_control(trees.project, trees.below, wanted);
    for (const auto &path : policy.protect.value_or(std::vector<PolicyPath>{}))
        wanted.push_back({trees.repository.value_or(""), path.path, standin_of(path, trees), false, false});
    if (policy.protect && policy.repository_alone && trees.around && !trees.repository && defence_is_on("protect-from-root"))
        add_from_root(*trees.around, *policy.protect, wanted);
    // The next session decides by it what to show.
    if (policy.shown() == ProjectScope::project && trees.repository && defence_is_on("project-stays"))
        wanted.push_back({*trees.repository, ".git", Standin::none, false, true});
    return wanted;
}

std::vector<FoundPaths> find_all(const GuardedTrees &trees, const ProjectsPolicy &policy)
{
    std::vector<FoundPaths> found;
    found.push_back(find(trees.project, wanted_in_project(trees, policy)));
    MaskedPaths masked =
        trees.around ? find_masked(*trees.around, policy.repository_alone, policy.mask) : find_masked(trees.project, policy.mask);
    GuardedPaths &project = found.front().guarded;
    project.masked = std::move(masked.paths);
    project.notices.insert(project.notices.end(), masked.notices.begin(), masked.notices.end());
    for (const auto &tree : trees.git_directories)
        found.push_back(policy.protect ? FoundPaths{} : find(tree, gitdir_executing_paths(tree, protect_limit)));
    return found;
}

// A placeholder below a missing one cannot be made either.
std::vector<std::string> make(const GuardedTree &tree, const std::vector<Placeholder> &placeholders)
{
    std::vector<std::string> targets;
    std::string missing;
    for (const auto &placeholder : placeholders) {
        if (!missing.empty() && placeholder.path.compare(0, missing.size(), missing) == 0) continue;
        if (!make_placeholder(tree.top, placeholder.path, placeholder.standin))
            missing = placeholder.path + "/";
        else if (placeholder.is_target)
            targets.push_back(placeholder.path);
    }
    return targets;
}

void require_beneath(const std::vector<std::string> &paths)
{
    for (const auto &path : paths) {
        bool strange = path.empty() || path.front() == '/' || path.find('\0') != std::string::npos;
        for (const auto &name : path_components(path))
            strange = strange || name == "..";
        if (strange) throw ProtocolError("a path to protect is not in the project");
    }
}

} // namespace

std::string order_for_tree(std::size_t index)
{
    return Encoder().number(index).bytes();
}

void serve_guarded_paths(const AsUser & /*user*/, const GuardedTrees &trees, const ProjectsPolicy &policy, FdRef channel)
{
    fault_point("finding-paths");
    const std::vector<FoundPaths> found = find_all(trees, policy);
    for (const auto &one : found)
        send_long_answer(channel, encode(one.guarded));
    for (;;) {
        pollfd wait{channel.get(), POLLIN, 0};
        if (poll(&wait, 1, -1) < 0 && errno != EINTR) throw_errno("waiting for the runner");
        if (wait.revents == 0) continue;
        const auto order = receive_packet(channel, in_seconds(0));
        if (!order) return;
        const std::size_t index = Decoder(order->bytes).number();
        const GuardedTree &tree = index == 0 ? trees.project : trees.git_directories.at(index - 1);
        send_long_answer(channel, Encoder().texts(make(tree, found.at(index).placeholders)).bytes());
    }
}

GuardedPaths decode_guarded_paths(std::string_view bytes)
{
    auto paths = decode_fields<GuardedPaths>(bytes);
    for (const auto *some : {&paths.read_only, &paths.placeholders, &paths.kept, &paths.masked, &paths.inner})
        require_beneath(*some);
    return paths;
}

std::vector<std::string> decode_paths(std::string_view bytes)
{
    std::vector<std::string> paths = decode_texts(bytes, guarded_texts_limit);
    require_beneath(paths);
    return paths;
}

} // namespace pi_agent
