// Looks at the agent's program and at what npm installed for everybody, closes the way to it, and keeps in mind what was closed.
#include "admin/host/host_things.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace pi_agent {

// What apply has hidden, as a file of JSON in a directory that only root can enter; and looking through root's places for files of the
// agents' group.

namespace {

void write_hidden(const HiddenPlaces &places)
{
    write_note(hidden_name, nlohmann::json(places).dump(1) + "\n");
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
    changes.make(order, [&] { give_rights(place, former, path); });
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
    return first_of_group(open_or_throw("opening " + path, path, O_RDONLY | O_DIRECTORY), path, facts.st_dev, group);
}

// --- The agent's program, and what npm installed for everybody.

constexpr mode_t hidden_mode = 0750;
constexpr mode_t open_mode = 0755;
constexpr const char *program_name = "agent's program"; // in messages

std::optional<std::string> problem_of_program(const struct stat &status)
{
    if (!S_ISREG(status.st_mode)) return "is not a regular file";
    if ((status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0) return "is not executable";
    if ((status.st_mode & (S_ISUID | S_ISGID)) != 0) return "is setuid or setgid";
    // The wrapper is in this program's directory. An agent.binary that is the wrapper would start itself, and hiding it would hide pi.
    constexpr const char *own = "/proc/self/exe";
    std::error_code problem;
    const auto directory = std::filesystem::read_symlink(own, problem).parent_path();
    if (problem) throw SystemFailure(problem.value(), std::string("cannot read the link ") + own);
    struct stat wrapper {};
    const auto path = directory / build::command_name;
    if (::stat(path.c_str(), &wrapper) == 0 && wrapper.st_dev == status.st_dev && wrapper.st_ino == status.st_ino)
        return "is pi-agent's own wrapper";
    return std::nullopt;
}

// Closes `path`, which is canonical, or opens it again. `what` names it in messages.
void hide_place(const AsRoot &root, const Policy &policy, const std::string &path, const std::string &what, Changes &changes)
{
    const auto group = find_group(policy.agent.group);
    const struct stat status = examine(open_trusted(path, O_PATH, program_name), "cannot examine " + path);
    const bool hidden = group && status.st_gid == group->value() && (status.st_mode & 07777U) == hidden_mode;
    const bool hide = policy.wrapper.hide_direct_binary;
    const auto give = [&](const FormerRights &rights) {
        give_rights(open_trusted(path, O_RDONLY | O_NONBLOCK, program_name), rights, path);
    };
    if (hide && !hidden) {
        changes.make(fmt::format("hide {}{} (root:{} {:04o})", what, path, policy.agent.group, hidden_mode), [&] {
            if (!group) throw Failure(ExitStatus::internal, "the group " + policy.agent.group + " does not exist yet");
            // These may be the rights that apply gave it, which must not come back. With another group somebody closed it before, and those
            // rights do.
            const bool is_hidden_already =
                status.st_uid == 0 && (status.st_mode & 07777U) == hidden_mode && is_agents_group(root, status.st_gid, policy.agent.group);
            // Notes the current owner and mode of `path` before they change; what is noted of it already stays.
            if (!is_hidden_already) {
                if (auto places = read_hidden_places(root); places.emplace(path, rights_in(status)).second) write_hidden(places);
            }
            give(FormerRights{0, group->value(), hidden_mode});
        });
    } else if (!hide && hidden) {
        const auto notes = read_hidden_places(root);
        const auto noted = notes.find(path);
        const FormerRights former = {0, noted == notes.end() ? 0 : noted->second.gid,
                                     noted == notes.end() ? open_mode : noted->second.mode};
        changes.make(fmt::format("open {} again (group {}, {:04o}): whoever that lets in can run it without a sandbox", path, former.gid,
                                 former.mode),
                     [&] { give(former); });
    }
}

constexpr std::array<const char *, 2> agent_packages = {"@earendil-works/pi-coding-agent",
                                                        "@mariozechner/pi-coding-agent"}; // it has had two names
constexpr std::array<const char *, 2> global_modules = {"/usr/lib/node_modules/", "/usr/local/lib/node_modules/"};

constexpr const char *npm_agent = "agent's package of npm"; // in messages

// Empty if it does not exist, or if others can change the way to it.
std::optional<std::string> try_resolve(const std::string &path)
{
    try {
        return resolve_trusted(path, npm_agent).canonical;
    } catch (const Failure &) {
        return std::nullopt;
    }
}

bool is_agents(const std::string &package)
{
    return std::ranges::any_of(agent_packages, [&](const std::string &name) {
        const auto end = "/node_modules/" + name;
        return package.size() > end.size() && package.compare(package.size() - end.size(), end.size(), end) == 0;
    });
}

// Empty if it does not exist. Looks at nothing on a way that others can change: such a package counts as open.
std::optional<NpmInstall> look_at(const std::string &package)
{
    try {
        if (const auto real = resolve_trusted(package, npm_agent).canonical; real != package && defence_is_on("npm-own-place"))
            return NpmInstall{package, true, "it is a link to " + real};
        struct stat facts {};
        if (::stat(package.c_str(), &facts) != 0) throw_errno("examining " + package);
        return NpmInstall{package, (facts.st_mode & S_IXOTH) != 0, ""};
    } catch (const SystemFailure &failure) {
        if (failure.error_number() == ENOENT || failure.error_number() == ENOTDIR) return std::nullopt;
        return NpmInstall{package, true, failure.what()};
    } catch (const Failure &failure) {
        return NpmInstall{package, true, failure.what()};
    }
}

} // namespace

FormerRights rights_in(const struct stat &facts)
{
    return {facts.st_uid, facts.st_gid, facts.st_mode & 07777U};
}

void to_json(nlohmann::json &json, const FormerRights &rights)
{
    json = {{"uid", rights.uid}, {"gid", rights.gid}, {"mode", rights.mode}};
}

void from_json(const nlohmann::json &json, FormerRights &rights)
{
    rights = {json.at("uid"), json.at("gid"), json.at("mode").get<mode_t>() & 07777U};
}

void give_rights(FdRef place, const FormerRights &rights, const std::string &path)
{
    if (::fchown(place.get(), rights.uid, rights.gid) != 0 || ::fchmod(place.get(), rights.mode) != 0)
        throw_errno("cannot set owner and mode of " + path);
}

HiddenPlaces read_hidden_places(const AsRoot & /*root*/)
{
    HiddenPlaces places;
    if (const auto text = read_note(hidden_name))
        parse_note(hidden_name, *text, "; remove it", NoteVersion::none, [&](const nlohmann::json &json) { json.get_to(places); });
    return places;
}

bool is_agents_group(const AsRoot &root, gid_t gid, const std::string &group)
{
    if (!group_name(Gid(gid))) return true;
    std::set<std::string> names{group};
    try {
        if (const auto applied = read_applied(root); applied.last) names.insert(parse_policy(*applied.last).agent.group);
    } catch (const PolicyError &) { // NOLINT(bugprone-empty-catch): of another version, which knew other keys
    }
    return std::ranges::any_of(names, [&](const std::string &name) {
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
    if (!changes.dry_run() && places.size() != before) write_hidden(places);
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

std::optional<HidingPlace> choose_hiding_place(const std::string &directory, const std::string &program)
{
    if (is_within(program, "/nix")) return std::nullopt;
    // All versions, with the one that starts: a switch from one to another opens none of them.
    constexpr const char *agents = "/usr/lib/pi-agent/agents";
    if (is_within(directory, agents) && is_within(program, agents)) return HidingPlace{agents, true};
    const auto tree = parent_of(directory);
    const bool own_tree = tree == "/usr/lib/pi-agent/agent" || (is_within(tree, "/opt") && tree != "/opt");
    if (own_tree && directory == tree + "/bin" && is_within(program, tree)) return HidingPlace{tree, true};
    if (const auto package = npm_package_of(program)) return HidingPlace{*package, true};
    return HidingPlace{program, false};
}

std::optional<std::string> npm_package_of(const std::string &path)
{
    constexpr std::string_view modules = "/node_modules/";
    const auto found = path.rfind(modules);
    if (found == std::string::npos) return std::nullopt;
    const auto begin = found + modules.size();
    if (path[begin] == '.') return std::nullopt; // npm's own, such as .bin
    auto end = path.find('/', begin);
    if (path[begin] == '@' && end != std::string::npos) end = path.find('/', end + 1);
    if (end == std::string::npos) return std::nullopt; // a file that is not part of a package
    return path.substr(0, end);
}

bool check_agent_binary(const Policy &policy, Problems &problems)
{
    const auto &agent = policy.agent;
    const auto report = [&](const std::string &problem, const std::string &remedy) {
        problems.add(agent.binary_where, "agent.binary", problem, remedy);
    };
    try {
        const struct stat status = examine(open_trusted(agent.binary, O_PATH, program_name), "cannot examine " + agent.binary);
        if (const auto problem = problem_of_program(status))
            report(quote(agent.binary) + " " + *problem, "name the program that starts the agent");
    } catch (const SystemFailure &failure) {
        if (failure.error_number() == EACCES) return false;
        report(failure.what(), "'sudo pi-agentctl agent install' fetches the agent; or name where it is");
    } catch (const Failure &failure) {
        report(failure.what(), "");
    }
    return true;
}

std::optional<HidingPlace> hiding_place_of(const AsRoot & /*root*/, const Policy &policy)
{
    const auto &binary = policy.agent.binary;
    return choose_hiding_place(resolve_trusted(parent_of(binary), program_name).canonical, resolve_trusted(binary, program_name).canonical);
}

std::optional<HidingPlace> hiding_place_if_there(const AsRoot &root, const Policy &policy)
{
    return if_there([&] { return hiding_place_of(root, policy); });
}

void hide_agent_binary(const AsRoot &root, const Policy &policy, Changes &changes)
{
    const auto &binary = policy.agent.binary;
    const auto place = hiding_place_of(root, policy);
    if (!place) {
        if (!policy.wrapper.hide_direct_binary) return;
        throw PolicyError({{policy.agent.binary_where, "agent.binary", quote(binary) + " is in the Nix store, where nothing can be hidden",
                            "say 'wrapper: {hide_direct_binary: false}'"}});
    }
    hide_place(root, policy, place->path,
               place->whole_tree ? "the agent's directory " : "only the agent's program, for its directory is not its own: ", changes);
}

std::vector<NpmInstall> find_npm_installs(const AsRoot & /*root*/, const Policy &policy)
{
    const auto agent = try_resolve(policy.agent.binary);
    std::vector<NpmInstall> installs;
    // With another prefix than npm's own (/opt/node/lib/node_modules), the command shows where the package is.
    std::set<std::string> packages;
    for (const std::string modules : global_modules)
        for (const auto *name : agent_packages)
            packages.insert(modules + name);
    for (const auto *directory : system_program_directories)
        for (const auto &command : {std::string("pi"), policy.wrapper.command_name})
            if (const auto program = try_resolve(std::string(directory) + "/" + command))
                if (const auto package = npm_package_of(*program); package && is_agents(*package)) packages.insert(*package);
    for (const auto &package : packages) {
        if (agent && is_within(*agent, try_resolve(package).value_or(package))) continue;
        if (auto install = look_at(package)) installs.push_back(std::move(*install));
    }
    return installs;
}

std::set<std::string> places_of_agent(const AsRoot &root, const Policy &policy)
{
    std::set<std::string> places;
    for (const auto &install : find_npm_installs(root, policy))
        places.insert(install.path);
    if (const auto place = hiding_place_if_there(root, policy)) places.insert(place->path);
    return places;
}

std::vector<NpmInstall> hide_npm_installs(const AsRoot &root, const Policy &policy, Changes &changes)
{
    std::vector<NpmInstall> left;
    for (const auto &install : find_npm_installs(root, policy)) {
        const bool concerns = policy.wrapper.hide_direct_binary == install.is_open; // closed by hand is closed
        if (concerns && install.why_left.empty())
            hide_place(root, policy, install.path, "the agent's package that npm installed for everybody: ", changes);
        else if (concerns && install.is_open)
            left.push_back(install);
    }
    return left;
}

} // namespace pi_agent
