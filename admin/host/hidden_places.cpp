// A file of JSON in root's own directory.
#include "admin/host/hidden_places.hpp"

#include "admin/host/policy_files.hpp"
#include "admin/host/root_files.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/host/account.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_load.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
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

std::string notes_path()
{
    return std::string(applied_directory) + "/" + hidden_name;
}

void write_notes(const HiddenPlaces &places)
{
    auto json = nlohmann::ordered_json::object();
    for (const auto &[path, rights] : places)
        json[path] = {{"uid", rights.uid}, {"gid", rights.gid}, {"mode", rights.mode}};
    const auto directory = open_trusted(applied_directory, O_RDONLY | O_DIRECTORY, "directory of applied policies");
    replace_root_file(directory, hidden_name, json.dump(1) + "\n", notes_mode, notes_path());
}

// Only what is hidden still: root's, of the agents' group, closed to others. Whether there is nothing to remember of it any more: what
// somebody has opened belongs to the agents' group still.
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

} // namespace

HiddenPlaces read_hidden_places(const AsRoot & /*root*/)
{
    HiddenPlaces places;
    try {
        const auto json = nlohmann::json::parse(read_trusted_file(notes_path(), notes_limit, "list of what is hidden"));
        for (const auto &[path, rights] : json.items())
            places[path] = {rights.at("uid"), rights.at("gid"), static_cast<mode_t>(rights.at("mode").get<unsigned>() & rights_of_mode)};
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != ENOENT) throw;
    } catch (const nlohmann::json::exception &) {
        throw Failure(ExitStatus::configuration, notes_path() + " is damaged; remove it");
    }
    return places;
}

void remember_hidden(const AsRoot &root, const std::string &path, const struct stat &facts)
{
    auto places = read_hidden_places(root);
    if (places.emplace(path, FormerRights{facts.st_uid, facts.st_gid, facts.st_mode & rights_of_mode}).second) write_notes(places);
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

} // namespace pi_agent
