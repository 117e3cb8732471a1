// The agents that this release can fetch, and the versions on this host with the links that say which starts.
#include "admin/agents/agents.hpp"
#include "admin/host/host_things.hpp"
#include "admin/programs/program.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "runner/root/session/session_directory.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

namespace pi_agent {

namespace {

constexpr std::size_t agent_data_limit = std::size_t{8} << 20U;
constexpr const char *agent_suffix = ".json";

std::string read_data(const std::string &name)
{
    return read_trusted_file(std::string(build::agents_path) + "/" + name, agent_data_limit, "data of agents");
}

PinnedPackage pinned_from(const nlohmann::json &json)
{
    return {json.at("package"), json.at("version"), json.at("integrity")};
}

// --- The versions on this host, and the links that say which of them starts. Each change is one rename(2).

constexpr const char *current_link = "current";
constexpr const char *previous_link = "previous";
constexpr const char *link_text_of_default = "agents/pi/current";
constexpr const char *set_aside_name = ".agent"; // the default link while it is made; or what was installed by hand, while it moves
constexpr const char *by_hand = "by-hand";
constexpr mode_t closed_mode = 0750;
constexpr mode_t passable_mode = 0755;
constexpr const char *what_agents = "directory of agents"; // in messages

UniqueFd open_agents(const std::string &below = "")
{
    return open_trusted(join_path(agents_directory, below), O_RDONLY | O_DIRECTORY, what_agents);
}

bool is_version_name(const std::string &name)
{
    return is_package_version(name) || name.starts_with(by_hand);
}

void sync_agents(FdRef directory)
{
    if (::fsync(directory.get()) != 0) throw_errno("cannot write " + std::string(agents_directory) + " to disk");
}

// Replaces whatever has the name, in one step.
void set_link(FdRef directory, const std::string &name, const std::string &text)
{
    const auto fresh = name + ".new";
    if (::unlinkat(directory.get(), fresh.c_str(), 0) != 0 && errno != ENOENT) throw_errno("cannot remove the link " + fresh);
    if (::symlinkat(text.c_str(), directory.get(), fresh.c_str()) != 0) throw_errno("cannot make the link " + fresh);
    if (::renameat(directory.get(), fresh.c_str(), directory.get(), name.c_str()) != 0) throw_errno("cannot make the link " + name);
    sync_agents(directory);
}

std::optional<struct stat> look_at_name(FdRef directory, const std::string &name)
{
    struct stat facts {};
    if (::fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) return facts;
    require_gone("examining " + name);
    return std::nullopt;
}

// Owner and mode of the directory of all agents: closed to everybody else if the policy hides the agent, or says nothing yet.
struct Closing {
    gid_t group = 0;
    mode_t mode = passable_mode;
};

Closing closing_of_policy()
{
    Policy policy;
    try {
        policy = load_policy(policy_path);
    } catch (const Failure &) { // no policy yet, or one with mistakes, which check reports
        policy = Policy();
    }
    const auto group = find_group(policy.agent.group);
    if (!policy.wrapper.hide_direct_binary || !group) return {}; // apply closes it
    return {group->value(), closed_mode};
}

void make_directory_once(FdRef parent, const std::string &name, const Closing &closing)
{
    if (::mkdirat(parent.get(), name.c_str(), 0700) != 0) {
        if (errno == EEXIST) return;
        throw_errno("cannot create the directory " + name);
    }
    const auto made = open_or_throw("opening " + name, parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (::fchown(made.get(), 0, closing.group) != 0 || ::fchmod(made.get(), closing.mode) != 0)
        throw_errno("cannot set owner and mode of " + name);
}

UniqueFd open_product_directory()
{
    return open_trusted(parent_of(agents_directory), O_RDONLY | O_DIRECTORY, what_agents);
}

std::string free_name_by_hand(FdRef versions)
{
    std::string name = by_hand;
    for (int number = 2; look_at_name(versions, name); ++number)
        name = by_hand + ("-" + std::to_string(number));
    return name;
}

// Replaces the directory that was installed by hand with the default agent's link, in one step; the directory becomes a version. A run that
// is killed in between leaves the directory as set_aside_name, where the next run finds it.
void replace_by_hand(FdRef product, FdRef versions)
{
    const auto [directory, name] = split_last(default_agent_link);
    const auto aside = look_at_name(product, set_aside_name);
    if (!aside || !S_ISDIR(aside->st_mode)) {
        set_link(product, set_aside_name, link_text_of_default);
        if (::renameat2(product.get(), set_aside_name, product.get(), name.c_str(), RENAME_EXCHANGE) != 0)
            throw_errno("cannot replace " + std::string(default_agent_link) + " with a link");
        fault_point("agent-exchanged");
    }
    const auto kept = free_name_by_hand(versions);
    set_link(versions, previous_link, kept);
    if (::renameat(product.get(), set_aside_name, versions.get(), kept.c_str()) != 0)
        throw_errno("cannot keep the former agent as " + kept);
    sync_agents(versions);
}

void remove_unfinished_tree()
{
    const auto path = join_path(agents_directory, unfinished_name);
    remove_trees({path}, path);
}

} // namespace

std::vector<std::string> known_agents()
{
    std::vector<std::string> names;
    for (auto &file : list_trusted_directory(build::agents_path, agent_suffix, "data of agents")) {
        file.resize(file.size() - std::string_view(agent_suffix).size());
        if (file != "node") names.push_back(std::move(file));
    }
    return names;
}

KnownAgent read_known_agent(const std::string &name)
{
    const auto names = known_agents();
    if (std::find(names.begin(), names.end(), name) == names.end())
        throw Failure(ExitStatus::usage, fmt::format("this release does not know the agent {}; it knows {}", escape_for_display(name),
                                                     fmt::join(names, ", ")));
    utsname host{};
    if (::uname(&host) != 0) throw_errno("asking for the kind of this machine");
    try {
        const auto json = nlohmann::json::parse(read_data(name + agent_suffix));
        const auto shared = nlohmann::json::parse(read_data("node.json"));
        const auto node = shared.at("node").find(host.machine);
        if (node == shared.at("node").end())
            throw Failure(ExitStatus::unavailable, fmt::format("there is no node for {} here, so {} cannot be installed on it; "
                                                               "install the agent yourself, and name it in agent.binary",
                                                               host.machine, name));
        const auto platforms = json.value("platform_package", nlohmann::json::object());
        return {{{},
                 {},
                 {},
                 pinned_from(*node),
                 pinned_from(shared.at("npm")),
                 json.at("package"),
                 json.at("command"),
                 platforms.value(host.machine, ""),
                 json.at("version"),
                 read_data(name + ".package"),
                 read_data(name + ".lock")},
                name};
    } catch (const nlohmann::json::exception &failure) {
        throw Failure(ExitStatus::configuration,
                      std::string("the data in ") + build::agents_path + " is damaged; install pi-agent again: " + failure.what());
    }
}

void remove_trees(const std::vector<std::string> &paths, const std::string &what)
{
    std::vector<std::string> command = {"rm", "-rf", "--one-file-system", "--"}; // it follows no link
    command.insert(command.end(), paths.begin(), paths.end());
    require_success(command, "cannot remove " + what);
}

bool is_installed_by_hand(const AsRoot & /*root*/)
{
    const auto product = if_there(open_product_directory);
    if (!product) return false;
    const auto found = look_at_name(product, split_last(default_agent_link).second);
    const auto aside = look_at_name(product, set_aside_name);
    return (found && S_ISDIR(found->st_mode)) || (aside && S_ISDIR(aside->st_mode));
}

bool is_linked(const AsRoot & /*root*/, const std::string &name)
{
    if (name != default_agent) return true;
    const auto product = if_there(open_product_directory);
    return product && read_link(product, split_last(default_agent_link).second) == link_text_of_default;
}

std::vector<InstalledAgent> installed_agents(const AsRoot & /*root*/)
{
    std::vector<InstalledAgent> all;
    const auto agents = if_there([] { return open_agents(); });
    if (!agents) return all;
    for (const auto &name : names_in(agents)) {
        const auto versions = find_beneath(agents, name, O_RDONLY | O_DIRECTORY);
        if (name.starts_with('.') || !versions) continue;
        const auto current = read_link(versions, current_link);
        const auto previous = read_link(versions, previous_link);
        for (const auto &version : names_in(versions)) {
            const auto facts = look_at_name(versions, version);
            if (!is_version_name(version) || !facts || !S_ISDIR(facts->st_mode)) continue;
            all.push_back(
                {name, version, version == current, version == previous, static_cast<std::uint64_t>(facts->st_mtim.tv_sec) * 1'000'000});
        }
    }
    std::sort(all.begin(), all.end(), [](const InstalledAgent &one, const InstalledAgent &other) {
        if (one.name != other.name) return one.name < other.name;
        const bool hand = one.version.starts_with(by_hand);
        if (hand != other.version.starts_with(by_hand)) return hand;
        return hand ? one.version < other.version : is_older_version(one.version, other.version);
    });
    return all;
}

std::optional<InstalledAgent> current_agent(const std::vector<InstalledAgent> &all, const std::string &name)
{
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const InstalledAgent &agent) { return agent.name == name && agent.is_current; });
    return found == all.end() ? std::nullopt : std::optional(*found);
}

bool has_version(const std::vector<InstalledAgent> &all, const std::string &name, const std::string &version)
{
    return std::any_of(all.begin(), all.end(), [&](const InstalledAgent &agent) { return agent.name == name && agent.version == version; });
}

void make_agents_directory(const AsRoot & /*root*/, const std::string &name)
{
    const auto product_path = parent_of(agents_directory);
    const auto library = open_trusted(parent_of(product_path), O_RDONLY | O_DIRECTORY, what_agents);
    make_directory_once(library, split_last(product_path).second, {});
    const auto product = open_product_directory();
    make_directory_once(product, split_last(agents_directory).second, closing_of_policy());
    make_directory_once(open_agents(), name, {});
}

void remove_unfinished(const AsRoot &root)
{
    end_fetch(root);
    if (!if_there([] { return open_agents(); })) return;
    remove_unfinished_tree();
}

void place_version(const AsRoot & /*root*/, const std::string &name, const std::string &version)
{
    const auto agents = open_agents();
    const auto versions = open_agents(name);
    if (::renameat2(agents.get(), unfinished_name, versions.get(), version.c_str(), RENAME_NOREPLACE) != 0)
        throw_errno("cannot install " + name + " " + version);
    sync_agents(versions);
    fault_point("agent-placed");
}

void switch_to(const AsRoot &root, const std::string &name, const std::string &version)
{
    const auto versions = open_agents(name);
    const auto former = read_link(versions, current_link);
    // First: a run that is killed between these two leaves nothing to go back to, rather than the wrong version.
    if (former != version && !former.empty()) set_link(versions, previous_link, former);
    set_link(versions, current_link, version);
    fault_point("agent-switched");
    if (name != default_agent) return;
    const auto product = open_product_directory();
    if (is_installed_by_hand(root)) return replace_by_hand(product, versions);
    const auto link = split_last(default_agent_link).second;
    if (read_link(product, link) != link_text_of_default) set_link(product, link, link_text_of_default);
}

void switch_back(const AsRoot & /*root*/, const std::string &name)
{
    const auto versions = open_agents(name);
    if (::renameat2(versions.get(), current_link, versions.get(), previous_link, RENAME_EXCHANGE) != 0)
        throw_errno("cannot exchange the versions of " + name);
    sync_agents(versions);
}

void remove_version(const AsRoot & /*root*/, const std::string &name, const std::string &version)
{
    // Moves it out of the way first: half a version must not count as one.
    const auto agents = open_agents();
    if (::renameat2(open_agents(name).get(), version.c_str(), agents.get(), unfinished_name, RENAME_NOREPLACE) != 0)
        throw_errno("cannot remove " + name + " " + version);
    remove_unfinished_tree();
}

} // namespace pi_agent
