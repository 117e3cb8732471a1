// Root's own files and directories: read, replaced in one step, locked; and what apply has hidden, as one of them.
#include "admin/host/root_files.hpp"

#include "admin/host/accounts.hpp"
#include "admin/host/agent_binary.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"

#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <sys/file.h>

namespace pi_agent {

// What apply has hidden, as a file of JSON in a directory that only root can enter; and looking through root's places for files of the
// agents' group.

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

// Root's own files and directories: read, replaced in one step, and locked.

namespace {

void sync_directory(FdRef directory, const std::string &path)
{
    if (::fsync(directory.get()) != 0) throw_errno("cannot write the directory of " + path + " to disk");
}

void set_owner_and_mode(FdRef directory, const std::string &path, mode_t mode)
{
    if (::fchown(directory.get(), 0, 0) != 0 || ::fchmod(directory.get(), mode) != 0) throw_errno("cannot set owner and mode of " + path);
}

UniqueFd open_below(FdRef parent, const std::string &name)
{
    return open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

UniqueFd take(const std::string &path, const std::string &held)
{
    UniqueFd lock = open_or_throw("cannot open " + path, FdRef(AT_FDCWD), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
        spdlog::debug("locked {}", path);
        return lock;
    }
    if (errno == EWOULDBLOCK) throw Failure(FailureKind::busy, held);
    throw_errno("cannot lock " + path);
}

void check_present(FdRef directory, const std::string &path, mode_t mode, Changes &changes)
{
    const struct stat status = examine(directory, "cannot examine " + path);
    if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        // Whoever could write here may have left something, and taking it over would make that trusted.
        throw Failure(
            FailureKind::untrusted,
            fmt::format(
                "{} belongs to uid {} with mode {:04o}, so others than root can write to it; move it away and run the command again", path,
                status.st_uid, status.st_mode & 07777U));
    }
    if (status.st_gid == 0 && (status.st_mode & 07777U) == mode) return;
    changes.make(fmt::format("set the directory {} to root:root {:04o}", path, mode), [&] { set_owner_and_mode(directory, path, mode); });
}

} // namespace

void write_beside(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path)
{
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    const auto fd = open_or_throw("cannot create " + path, directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0400);
    try {
        write_whole(fd, text, path);
        if (::fchown(fd.get(), 0, 0) != 0 || ::fchmod(fd.get(), mode) != 0) throw_errno("cannot set owner and mode of " + path);
        if (::fsync(fd.get()) != 0) throw_errno("cannot write " + path + " to disk");
    } catch (const std::exception &) {
        ::unlinkat(directory.get(), name.c_str(), 0); // best_effort: half a file is useless, and the failure is reported
        throw;
    }
}

void move_into_place(FdRef directory, const std::string &name, const std::string &final_name, const std::string &path)
{
    if (::renameat(directory.get(), name.c_str(), directory.get(), final_name.c_str()) != 0) throw_errno("cannot install " + path);
    sync_directory(directory, path);
    spdlog::debug("wrote {}", path);
}

void replace_root_file(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path)
{
    write_beside(directory, name + ".new", text, mode, path + ".new");
    move_into_place(directory, name + ".new", name, path);
}

void remove_root_file(FdRef directory, const std::string &name, const std::string &path)
{
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    sync_directory(directory, path);
    spdlog::debug("removed {}", path);
}

void make_state_directories(const AsRoot &root, const Policy &policy, Changes &changes)
{
    const auto &state = policy.agent.state_dir;
    make_root_directory(root, state, 0711, changes);
    make_root_directory(root, state + "/users", 0711, changes);
    make_root_directory(root, state + "/sessions", 0700, changes);
}

void make_root_directory(const AsRoot & /*root*/, const std::string &path, mode_t mode, Changes &changes)
{
    const auto name = path.substr(path.rfind('/') + 1);
    const auto order = fmt::format("create the directory {} (root {:04o})", path, mode);
    const auto open_parent = [&] { return open_trusted(parent_of(path), O_PATH | O_DIRECTORY, "state directory"); };
    const auto parent = changes.dry_run() ? if_there(open_parent) : open_parent();
    if (!parent) return changes.make(order, [] {});
    if (const auto directory = open_below(parent, name)) return check_present(directory, path, mode, changes);
    if (errno == ENOTDIR || errno == ELOOP)
        throw Failure(ExitStatus::configuration, path + " is a symlink or not a directory; move it away");
    if (errno != ENOENT) throw_errno("cannot open the directory " + path);
    changes.make(order, [&] {
        if (::mkdirat(parent.get(), name.c_str(), 0700) != 0) throw_errno("cannot create " + path);
        const auto directory = open_below(parent, name);
        if (!directory) throw_errno("cannot open " + path);
        set_owner_and_mode(directory, path, mode);
    });
}

UniqueFd take_apply_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl.lock", "another 'pi-agentctl apply' is running; wait for it");
}

UniqueFd take_edit_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl-edit.lock", "somebody is editing the policy: another 'pi-agentctl edit' is running; wait for it");
}

UniqueFd take_agents_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl-agents.lock", "another 'pi-agentctl install-agent' is running; wait for it");
}

} // namespace pi_agent
