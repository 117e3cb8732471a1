// Looking through places of root's for files of a group.
#include "admin/host/accounts.hpp"

#include "admin/host/agent_binary.hpp"
#include "admin/host/hidden_places.hpp"
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/account.hpp"
#include "common/host/beneath.hpp"
#include "common/policy/policy_load.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace pi_agent {

namespace {

// "" where there is none. Follows no link, and looks at nothing that is mounted there.
std::string first_of_group(FdRef directory, const std::string &path, dev_t device, Gid group)
{
    for (const auto &name : names_in(directory)) {
        const std::string below = join_path(path, name);
        struct stat facts {};
        if (::fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            require_gone("examining " + below);
            continue;
        }
        if (facts.st_gid == group.value()) return below;
        if (!S_ISDIR(facts.st_mode) || facts.st_dev != device) continue;
        const UniqueFd inner = find_beneath(directory, name, O_RDONLY | O_DIRECTORY);
        if (!inner) {
            require_gone("opening " + below);
            continue;
        }
        if (const auto found = first_of_group(inner, below, device, group); !found.empty()) return found;
    }
    return "";
}

std::string first_of_group(const std::string &path, Gid group)
{
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) {
        require_gone("examining " + path, ENOTDIR);
        return "";
    }
    if (facts.st_gid == group.value()) return path;
    if (!S_ISDIR(facts.st_mode)) return "";
    const UniqueFd directory = open_or_throw("opening " + path, path, O_RDONLY | O_DIRECTORY);
    return first_of_group(directory, path, facts.st_dev, group);
}

} // namespace

std::set<std::string> places_of_group(const AsRoot &root, const Policy &policy)
{
    std::set<std::string> places = {policy.agent.binary, parent_of(policy_path)};
    for (const auto &install : find_npm_installs(root, policy))
        places.insert(install.path);
    for (const auto &[path, rights] : read_hidden_places(root))
        places.insert(path);
    if (const auto place = hiding_place_if_there(root, policy)) places.insert(place->path);
    return places;
}

void require_nothing_of_group(const std::set<std::string> &places, const std::string &group)
{
    const auto found = find_group(group);
    if (!found) return;
    for (const auto &place : places) {
        const auto path = first_of_group(place, *found);
        if (path.empty() || !defence_is_on("group-left-empty")) continue;
        throw Failure(ExitStatus::configuration,
                      escape_for_display(path) + " belongs to the group " + group +
                          ", whose number would be another group's next; give it another group, and run this again");
    }
}

} // namespace pi_agent
