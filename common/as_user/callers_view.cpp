// Looks at directories and links with the rights of the caller.
#include "common/as_user/user_paths.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <filesystem>

namespace pi_agent {

namespace {

constexpr std::size_t depth_limit = 128;

class LinkSearch {
public:
    LinkSearch(const UserPaths &paths, const std::function<bool()> &go_on) : paths_(paths), go_on_(go_on) {}

    void look_at(const std::string &name, const std::function<UserPlacePtr()> &follow)
    {
        if (!go_on_()) return;
        try {
            if (const UserPlacePtr place = follow(); S_ISDIR(place->facts.st_mode)) look_into(name, place);
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
