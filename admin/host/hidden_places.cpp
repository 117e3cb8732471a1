// What apply has hidden, as a file of JSON in a directory that only root can enter; and looking through root's places for files of the
// agents' group.
#include "admin/host/agent_binary.hpp"

#include "admin/host/accounts.hpp"
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/account.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_load.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::size_t notes_limit = std::size_t{1} << 20U;
constexpr mode_t notes_mode = 0600;
constexpr mode_t rights_of_mode = 07777;

void write_notes(const HiddenPlaces &places)
{
    auto json = nlohmann::ordered_json::object();
    for (const auto &[path, rights] : places)
        json[path] = rights_to_json(rights);
    const auto directory = open_applied_directory();
    replace_root_file(directory, hidden_name, json.dump(1) + "\n", notes_mode, path_of_applied(hidden_name));
}

// Gives back only what is still hidden: root's, of the agents' group, closed to others. True if its notes are not needed any more.
// What somebody has opened stays noted, because it still belongs to the agents' group.
bool give_back(const AsRoot &root, const std::string &path, const FormerRights &former, const std::string &group, Changes &changes)
{
    const auto place = open_trusted(path, O_RDONLY | O_NONBLOCK, "program that was hidden");
    const struct stat facts = examine(place, "cannot examine " + path);
    if (!is_agents_group(root, facts.st_gid, group) || !defence_is_on("hidden-given-back")) return true;
    if ((facts.st_mode & S_IRWXO) != 0) return false;
    const auto order =
        fmt::format("give {} its owner and mode back ({}:{} {:04o}): whoever these let in can run what is in it, without a sandbox",
                    escape_for_display(path), former.uid, former.gid, former.mode);
    changes.make(order, [&] {
        if (::fchown(place.get(), former.uid, former.gid) != 0 || ::fchmod(place.get(), former.mode) != 0)
            throw_errno("cannot set owner and mode of " + path);
    });
    return true;
}

// The first entry of that group; "" without one. Follows no link, and looks at nothing that is mounted there.
std::string first_of_group(FdRef directory, const std::string &path, dev_t device, Gid group)
{
    for (const auto &name : names_in(directory)) {
        std::string below = join_path(path, name);
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
        if (auto found = first_of_group(inner, below, device, group); !found.empty()) return found;
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

FormerRights rights_in(const struct stat &facts)
{
    return {facts.st_uid, facts.st_gid, facts.st_mode & rights_of_mode};
}

nlohmann::ordered_json rights_to_json(const FormerRights &rights)
{
    return {{"uid", rights.uid}, {"gid", rights.gid}, {"mode", rights.mode}};
}

FormerRights rights_of_json(const nlohmann::ordered_json &json)
{
    return {json.at("uid"), json.at("gid"), static_cast<mode_t>(json.at("mode").get<unsigned>() & rights_of_mode)};
}

HiddenPlaces read_hidden_places(const AsRoot & /*root*/)
{
    const auto text =
        if_there([] { return std::optional(read_trusted_file(path_of_applied(hidden_name), notes_limit, "list of what is hidden")); });
    if (!text) return {};
    HiddenPlaces places;
    try {
        const auto json = nlohmann::ordered_json::parse(*text);
        for (const auto &[path, rights] : json.items())
            places[path] = rights_of_json(rights);
    } catch (const nlohmann::json::exception &) {
        throw Failure(ExitStatus::configuration, path_of_applied(hidden_name) + " is damaged; remove it");
    }
    return places;
}

void remember_hidden(const AsRoot &root, const std::string &path, const struct stat &facts)
{
    auto places = read_hidden_places(root);
    if (places.emplace(path, rights_in(facts)).second) write_notes(places);
}

bool is_agents_group(const AsRoot &root, gid_t gid, const std::string &group)
{
    if (!group_name(Gid(gid))) return true;
    std::set<std::string> names{group};
    try {
        if (const auto applied = read_applied(root); applied.last) names.insert(parse_policy(*applied.last).agent.group);
    } catch (const PolicyError &) { // NOLINT(bugprone-empty-catch): of another version, which knew other keys
    }
    return std::any_of(names.begin(), names.end(), [&](const std::string &name) {
        const auto known = find_group(name);
        return known && known->value() == gid;
    });
}

void give_back_hidden(const AsRoot &root, const std::set<std::string> &current, const std::string &group, Changes &changes)
{
    auto places = read_hidden_places(root);
    const auto before = places.size();
    for (auto place = places.begin(); place != places.end();) {
        bool is_done = !current.contains(place->first);
        try {
            if (is_done) is_done = give_back(root, place->first, place->second, group, changes);
        } catch (const SystemFailure &failure) {
            if (failure.error_number() != ENOENT && failure.error_number() != ENOTDIR) throw; // what is gone needs nothing
        }
        place = is_done ? places.erase(place) : std::next(place);
    }
    if (!changes.dry_run() && places.size() != before) write_notes(places);
}

std::set<std::string> places_of_group(const AsRoot &root, const Policy &policy)
{
    auto places = places_of_agent(root, policy);
    places.insert({policy.agent.binary, parent_of(policy_path)});
    for (const auto &[path, rights] : read_hidden_places(root))
        places.insert(path);
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
                          ", whose number another group would get; give the file another group, and run the command again");
    }
}

} // namespace pi_agent
