// Looking through what a start reads as its user.
#include "common/decide/links_out.hpp"

#include "common/base/directory_stream.hpp"
#include "common/base/escape.hpp"
#include "common/policy/policy_paths.hpp"

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>

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

std::vector<std::string> paths_read_as_user(const Policy &policy, const AccessRules &rules, const Account &user)
{
    std::vector<std::string> paths{rules.config_directory};
    for (const char *name : {"/.agents/skills", "/.ssh/known_hosts", "/.gitconfig", "/.config/git/config"})
        paths.push_back(user.home + name);
    for (const auto &file : policy.host_env_files)
        paths.push_back(file.front() == '/' ? file : user.home + "/" + file);
    if (rules.ssh_key) paths.push_back(*rules.ssh_key);
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
