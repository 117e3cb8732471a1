// The agents that this release can fetch, taking over what was fetched, and the versions on this host with the links that say which starts.
#include "admin/agents/agents.hpp"
#include "admin/host/host_things.hpp"
#include "admin/programs/program.hpp"
#include "common/host/beneath.hpp"
#include "runner/root/session/session_directory.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/sendfile.h>
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

// Replaces the directory that was installed by hand with the default agent's link, in one step; the directory becomes a version. A run that
// is killed in between leaves the directory as set_aside_name, where the next run finds it.
void replace_by_hand(FdRef product, FdRef versions)
{
    const auto [directory, name] = split_last(default_agent_link);
    if (const auto aside = look_at_name(product, set_aside_name); !aside || !S_ISDIR(aside->st_mode)) {
        set_link(product, set_aside_name, link_text_of_default);
        if (::renameat2(product.get(), set_aside_name, product.get(), name.c_str(), RENAME_EXCHANGE) != 0)
            throw_errno("cannot replace " + std::string(default_agent_link) + " with a link");
        fault_point("agent-exchanged");
    }
    std::string kept = by_hand;
    for (int number = 2; look_at_name(versions, kept); ++number)
        kept = by_hand + ("-" + std::to_string(number));
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

// --- Copies what was fetched, by descriptor: the agent gets no inode, owner or mode of the fetching account.

constexpr std::uint64_t most_entries = 300'000;
constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30U;
constexpr std::ptrdiff_t deepest_tree = 64;
constexpr mode_t program_mode = 0755;
constexpr mode_t plain_mode = 0644;

[[noreturn]] void refuse_entry(const std::string &path, const std::string &problem)
{
    throw Failure(ExitStatus::denied, "the package is not installed: " + escape_for_display(path) + " " + problem);
}

void copy_bytes(FdRef from, FdRef to, std::uint64_t size, const std::string &path)
{
    while (size > 0) {
        const auto copied = ::sendfile(to.get(), from.get(), nullptr, size); // also from one file system to another
        if (copied < 0 && errno == EINTR) continue;
        if (copied < 0) throw_errno("cannot write " + std::string(agents_directory) + " (" + escape_for_display(path) + ")");
        if (copied == 0) return;
        size -= std::min(size, static_cast<std::uint64_t>(copied));
    }
}

// Copies one tree. It counts what it has seen, so that no tree keeps root busy for ever.
class TreeCopy {
public:
    explicit TreeCopy(uid_t owner) : owner_(owner) {}

    // `path` is for messages.
    void copy_directory(FdRef from, FdRef to, const std::string &path, std::ptrdiff_t depth)
    {
        if (depth > deepest_tree) refuse_entry(path, "nests too deep");
        for (const auto &name : names_in(from)) {
            const auto below = join_path(path, name);
            if (++entries_ > most_entries) refuse_entry(path, "is one of too many files");
            if (escape_for_display(name) != name) refuse_entry(below, "has an unsafe name");
            const auto entry = open_or_throw("opening " + below, from, name, O_PATH | O_NOFOLLOW);
            const auto facts = examine(entry, "examining " + below);
            if (const auto problem = problem_of_entry(facts, owner_)) refuse_entry(below, *problem);
            if (S_ISDIR(facts.st_mode)) {
                const auto inner = open_or_throw("opening " + below, from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
                if (::mkdirat(to.get(), name.c_str(), program_mode) != 0) throw_errno("cannot create " + below);
                const auto made = open_or_throw("opening " + below, to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
                if (::fchmod(made.get(), program_mode) != 0) throw_errno("cannot set the mode of " + below);
                copy_directory(inner, made, below, depth + 1);
            } else if (S_ISLNK(facts.st_mode)) {
                const auto text = read_link(entry, "");
                if (const auto problem = problem_of_link(text, depth)) refuse_entry(below, *problem);
                if (::symlinkat(text.c_str(), to.get(), name.c_str()) != 0) throw_errno("cannot create " + below);
            } else {
                copy_file(from, to, name, below);
            }
        }
    }

private:
    void copy_file(FdRef from, FdRef to, const std::string &name, const std::string &path)
    {
        const auto file = open_or_throw("opening " + path, from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        const auto facts = examine(file, "examining " + path);
        if (const auto problem = problem_of_entry(facts, owner_); problem || !S_ISREG(facts.st_mode))
            refuse_entry(path, problem.value_or("is not a file"));
        const auto size = static_cast<std::uint64_t>(facts.st_size);
        if (bytes_ += size; bytes_ > most_bytes) refuse_entry(path, "is one of too many bytes");
        const auto made = open_or_throw("cannot create " + path, to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        copy_bytes(file, made, size, path);
        mode_t mode = (facts.st_mode & S_IXUSR) != 0 ? program_mode : plain_mode;
        if (!defence_is_on("agent-tree-modes")) mode |= facts.st_mode & (S_ISUID | S_ISGID);
        if (::fchmod(made.get(), mode) != 0) throw_errno("cannot set the mode of " + path);
    }

    uid_t owner_;
    std::uint64_t entries_ = 0;
    std::uint64_t bytes_ = 0;
};

// What the launcher starts must exist, and be a file.
void require_file(FdRef tree, const std::string &path)
{
    const auto found = open_beneath(tree, path, O_PATH);
    if (!S_ISREG(examine(found, "examining " + path).st_mode)) refuse_entry(path, "is not a file, so it cannot be started");
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

void require_known_agent(const std::string &name)
{
    if (const auto names = known_agents(); !name.empty() && std::ranges::find(names, name) == names.end()) // without a name it is pi
        throw Failure(ExitStatus::usage, fmt::format("this release does not know the agent {}; it knows {}", escape_for_display(name),
                                                     fmt::join(names, ", ")));
}

KnownAgent read_known_agent(const std::string &name)
{
    require_known_agent(name);
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
            if (!(is_package_version(version) || version.starts_with(by_hand)) || !facts || !S_ISDIR(facts->st_mode)) continue;
            all.push_back(
                {name, version, version == current, version == previous, static_cast<std::uint64_t>(facts->st_mtim.tv_sec) * 1'000'000});
        }
    }
    std::ranges::sort(all, [](const InstalledAgent &one, const InstalledAgent &other) {
        if (one.name != other.name) return one.name < other.name;
        const bool hand = one.version.starts_with(by_hand);
        if (hand != other.version.starts_with(by_hand)) return hand;
        return hand ? one.version < other.version : is_older_version(one.version, other.version);
    });
    return all;
}

std::optional<InstalledAgent> current_agent(const std::vector<InstalledAgent> &all, const std::string &name)
{
    const auto found = std::ranges::find_if(all, [&](const InstalledAgent &agent) { return agent.name == name && agent.is_current; });
    return found == all.end() ? std::nullopt : std::optional(*found);
}

bool has_version(const std::vector<InstalledAgent> &all, const std::string &name, const std::string &version)
{
    return std::ranges::any_of(all, [&](const InstalledAgent &agent) { return agent.name == name && agent.version == version; });
}

void make_agents_directory(const AsRoot & /*root*/, const std::string &name)
{
    const auto product_path = parent_of(agents_directory);
    make_directory_once(open_trusted(parent_of(product_path), O_RDONLY | O_DIRECTORY, what_agents), split_last(product_path).second, {});
    make_directory_once(open_product_directory(), split_last(agents_directory).second, closing_of_policy());
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

std::optional<std::string> problem_of_entry(const struct stat &facts, uid_t owner)
{
    const auto kind = facts.st_mode & S_IFMT;
    if (kind != S_IFREG && kind != S_IFDIR && kind != S_IFLNK) return "is a device, fifo or socket, which no package needs";
    if (kind != S_IFLNK && (facts.st_mode & (S_ISUID | S_ISGID)) != 0 && defence_is_on("agent-tree-modes"))
        return "is setuid or setgid, which no package needs";
    if (!defence_is_on("agent-tree-owner")) return std::nullopt;
    if (facts.st_uid != owner) return "belongs to another account than the one that fetched it";
    if (kind == S_IFREG && facts.st_nlink != 1) return "has another name, which may lie elsewhere (a hard link)";
    return std::nullopt;
}

std::optional<std::string> problem_of_link(std::string_view text, std::ptrdiff_t depth)
{
    if (!defence_is_on("agent-tree-links")) return std::nullopt;
    if (text.empty() || text[0] == '/') return "is a symlink to an absolute path";
    bool is_below = false;
    for (const auto part : split(text, '/')) {
        const bool up = part == "..";
        // Behind a name that is a link itself, ".." would lead elsewhere than its text says.
        if (up && (is_below || depth-- == 0)) return "is a symlink that leads out of the package";
        is_below = is_below || (!up && !part.empty() && part != ".");
    }
    return std::nullopt;
}

std::string launcher_text(const KnownAgent &agent, const FetchLine &fetched)
{
    // Uses the tree's own name, because another version may take the link's place during a start. Where only the link is shown, uses the
    // link.
    const auto text = fmt::format("#!/bin/sh\n# {0} {1}, installed by pi-agentctl agent install.\ntree={2}/{0}/{1}\n"
                                  "[ -d \"$tree\" ] || tree=${{0%/bin/*}}\n",
                                  agent.name, fetched.version, agents_directory);
    const bool is_native = !agent.platform_package.empty();
    const auto node = fmt::format("exec \"$tree/node/bin/node\" --require {}/compile-cache.cjs", build::agents_path);
    return text + (is_native ? "exec" : node) + " \"$tree/" + fetched.program + "\" \"$@\"\n";
}

void take_over(const AsRoot & /*root*/, const KnownAgent &agent, const FetchLine &fetched)
{
    const auto private_directory = open_trusted("/var/lib/private", O_PATH | O_DIRECTORY, "directory of private state");
    const auto from = open_beneath(private_directory, std::string(fetch_name) + "/" + fetched_tree, O_RDONLY | O_DIRECTORY);
    const auto parent = open_trusted(agents_directory, O_RDONLY | O_DIRECTORY, "directory of agents");
    if (::mkdirat(parent.get(), unfinished_name, 0700) != 0) throw_errno("cannot create a directory in " + std::string(agents_directory));
    const auto to = open_or_throw("opening the new tree", parent, unfinished_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    fault_point("agent-copying");
    TreeCopy(examine(from, "examining what was fetched").st_uid).copy_directory(from, to, "", 0);
    require_file(to, fetched.program);
    if (agent.platform_package.empty()) require_file(to, "node/bin/node");
    if (::mkdirat(to.get(), "bin", program_mode) != 0) throw_errno("cannot create bin of the agent");
    const auto bin = open_or_throw("opening bin of the agent", to, "bin", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (::fchmod(bin.get(), program_mode) != 0) throw_errno("cannot set the mode of bin");
    const auto file = open_or_throw("cannot create bin/" + agent.name, bin, agent.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    write_whole(file, launcher_text(agent, fetched), "bin/" + agent.name);
    if (::fchmod(file.get(), program_mode) != 0) throw_errno("cannot set the mode of bin/" + agent.name);
    if (::fchmod(to.get(), program_mode) != 0) throw_errno("cannot set the mode of the new tree");
    if (::syncfs(to.get()) != 0) throw_errno("cannot write the new tree to disk");
    fault_point("agent-copied");
}

} // namespace pi_agent
