// Plans what of the host a session sees, its device nodes among it, and mounts nothing.
#include "runner/root/view/root_tree.hpp"

namespace pi_agent {

using namespace std::string_view_literals;

namespace {

constexpr const char *devices_top = "/dev";
constexpr std::size_t nodes_limit = 200; // each is a mount and a rule of the unit
constexpr mode_t all_may = S_IROTH | S_IWOTH;
constexpr mode_t group_may = S_IRGRP | S_IWGRP;

// Of the groups that open the host, these open only devices. A session's view and control group keep those devices from it, except the
// nodes that the policy names.
constexpr std::string_view groups_of_devices = "audio cdrom dialout kvm plugdev render vboxusers video";

std::vector<std::string> sorted_names(FdRef directory)
{
    std::vector<std::string> names = names_in(directory);
    std::sort(names.begin(), names.end());
    return names;
}

struct NodeSearch {
    const UniqueFd top = open_trusted(devices_top, O_RDONLY | O_DIRECTORY, "host's devices");
    ShownDevices found = {};

    void add(const PolicyPath &entry)
    {
        const std::size_t before = found.nodes.size() + found.notices.size();
        if (entry.path == nvidia_devices) {
            for (const auto &name : sorted_names(top))
                if (name.starts_with(nvidia_devices)) look_at(name, entry, true);
        } else {
            look_at(entry.path.substr(std::string(devices_top).size() + 1), entry, false);
        }
        if (found.nodes.size() + found.notices.size() == before)
            found.notices.push_back("no device for the agent: " + entry.path + " (devices, " + to_string(entry.where) +
                                    "): this host has none now");
    }

    // A directory stands for the nodes in it; `is_one_of_many`: anything else there is passed over.
    void look_at(const std::string &below, const PolicyPath &entry, bool is_one_of_many)
    {
        const UniqueFd opened = look_beneath(top, below, O_PATH | O_NOFOLLOW);
        if (!opened) {
            if (errno == ENOENT || is_one_of_many) return;
            throw_errno("opening the device " + join_path(devices_top, below));
        }
        const struct stat facts = examine(opened, "examining the device " + join_path(devices_top, below));
        if (S_ISDIR(facts.st_mode)) {
            const UniqueFd directory = open_beneath(top, below, O_RDONLY | O_DIRECTORY);
            for (const auto &name : sorted_names(directory))
                if (const UniqueFd node = look_beneath(directory, name, O_PATH | O_NOFOLLOW))
                    take(join_path(below, name), examine(node, "examining a device"), entry, true);
            return;
        }
        take(below, facts, entry, is_one_of_many);
    }

    void take(const std::string &below, const struct stat &facts, const PolicyPath &entry, bool is_one_of_many)
    {
        const std::string path = join_path(devices_top, below);
        const bool is_character = S_ISCHR(facts.st_mode);
        if ((!is_character && defence_is_on("character-devices")) || problem_of_device(path)) {
            if (is_one_of_many) return;
            throw Failure(
                FailureKind::named_place,
                escape_for_display(path) + " (devices, " + to_string(entry.where) +
                    ") is not a character device; a session sees neither disks nor links: ask the administrator to name the node itself");
        }
        if (found.nodes.size() == nodes_limit)
            throw Failure(FailureKind::named_place, "devices (" + to_string(entry.where) + ") are more than " +
                                                        std::to_string(nodes_limit) + " nodes; ask the administrator to name fewer");
        found.nodes.push_back(path);
        if ((facts.st_mode & all_may) == all_may) return;
        const Gid group(facts.st_gid);
        if ((facts.st_mode & group_may) == group_may &&
            (!is_privileged_group(group) || has_word(groups_of_devices, group_name(group).value_or("")))) {
            if (std::find(found.groups.begin(), found.groups.end(), group) == found.groups.end()) found.groups.push_back(group);
            return;
        }
        found.notices.push_back(
            "the agent cannot open " + escape_for_display(path) + " (devices, " + to_string(entry.where) +
            "): neither all users nor a group that opens nothing else of the host may read and write it; a rule of udev can "
            "say so");
    }
};

constexpr const char *certificate_places[] = {
#include "runner/certificate_places.inc"
};

// A session's own directories, where the host may have symlinks.
constexpr std::array own_directories = {"/home"sv, "/root"sv, "/srv"sv, "/mnt"sv, "/media"sv, "/var"sv, "/run"sv, "/tmp"sv};

constexpr std::size_t first_line_limit = 256; // as much as the kernel reads of it (execve(2))

std::string first_bytes_of(const std::string &program)
{
    const UniqueFd file = open_trusted(program, O_RDONLY | O_NONBLOCK, "agent's program");
    std::array<char, first_line_limit> bytes{};
    const ssize_t length = pread(file.get(), bytes.data(), bytes.size(), 0);
    if (length < 0) throw_errno("reading the agent's program " + program);
    return {bytes.data(), static_cast<std::size_t>(length)};
}

// Collects trees and symlinks for the paths that a session needs.
class Planner {
public:
    Planner(View view, const Policy &policy) : users_(policy.users), state_dir_(policy.agent.state_dir) { view_.view = view; }

    void add(const std::string &path, const std::string &what) { show(resolve(path, what).canonical, what); }

    // Shows the program's tree under both names: the symlink that the policy names may have files beside it that the program looks for,
    // such as its node.
    void add_program(const std::string &path, const std::string &what)
    {
        const std::string end = resolve(path, what).canonical;
        show_program(resolve(parent_of(path), what).canonical + path.substr(path.rfind('/')), what);
        show_program(end, what);
    }

    HostView finish()
    {
        std::set<std::string> trees;
        for (const auto &tree : view_.trees) // sorted: parents come before what is in them
            if (std::none_of(trees.begin(), trees.end(), [&](const std::string &holder) { return is_within(tree, holder); }))
                trees.insert(tree);
        view_.trees = std::move(trees);
        for (auto link = view_.links.begin(); link != view_.links.end();)
            link = is_shown(view_, link->first) ? view_.links.erase(link) : std::next(link);
        return std::move(view_);
    }

private:
    ResolvedPath resolve(const std::string &path, const std::string &what)
    {
        ResolvedPath end = resolve_trusted(path, what);
        for (const auto &link : end.links)
            if (std::find(own_directories.begin(), own_directories.end(), link.first) != own_directories.end())
                throw Failure(FailureKind::named_place, "the " + what + " " + escape_for_display(path) + " leads through the link " +
                                                            link.first +
                                                            ", where sessions have their own directory; name it by its real path, " +
                                                            escape_for_display(end.canonical));
        view_.links.insert(end.links.begin(), end.links.end());
        return end;
    }

    // Nobody named this tree, so it must not bring a user's project along.
    void show_program(const std::string &path, const std::string &what)
    {
        const std::string tree = tree_of_program(path);
        for (const auto &entry : users_)
            for (const auto &root : entry.roots)
                if (!is_shown_by(view_.view, tree) && are_nested(root.text, tree))
                    throw Failure(FailureKind::named_place, "with the " + what + " " + path + " every session would see " + tree +
                                                                ", where the root " + root.text + " (" + to_string(root.where) +
                                                                ") lies; install it in a directory of its own");
        show(tree, what);
    }

    void show(const std::string &path, const std::string &what)
    {
        if (is_shown_by(view_.view, path)) return;
        auto problem = problem_of_view_path(path);
        if (!problem && defence_is_on("view-beside-state")) problem = problem_beside_state(path, state_dir_);
        if (problem)
            throw Failure(FailureKind::named_place,
                          "the " + what + " leads to " + escape_for_display(path) + ", which " + problem->text + "; " + problem->remedy);
        view_.trees.insert(path);
    }

    const std::vector<UserEntry> &users_;
    const std::string &state_dir_;
    HostView view_;
};

void add_path(Planner &planner, const PolicyPath &shown)
{
    planner.add(shown.path, "path that view_paths (" + to_string(shown.where) + ") shows,");
}

// Looks the name in the policy up: sessions have the same directory at that place.
void require_on_path(const HostView &view, const PolicyPath &directory)
{
    const std::string what = "directory that path (" + to_string(directory.where) + ") names,";
    const auto refuse = [&](const std::string &why) {
        throw Failure(FailureKind::named_place, "the " + what + " " + escape_for_display(directory.path) + " " + why);
    };
    ResolvedPath end;
    try {
        end = resolve_trusted(directory.path, what);
    } catch (const SystemFailure &failure) {
        refuse(std::string("cannot be used: ") + failure.what() + "; ask the administrator to create it or to remove it from path");
    }
    if (!end.is_directory) refuse("is not a directory");
    if (!is_shown(view, end.canonical)) refuse("is not shown to sessions; ask the administrator to add it to view_paths");
}

void add_agent(Planner &planner, const AgentPolicy &agent)
{
    try {
        planner.add_program(agent.binary, "agent's program");
        const std::string interpreter = interpreter_of(first_bytes_of(agent.binary));
        if (!interpreter.empty()) planner.add_program(interpreter, "interpreter of the agent's program");
    } catch (const SystemFailure &failure) {
        throw Failure(FailureKind::agent_program, "the agent " + agent.binary + " cannot be run: " + failure.what() +
                                                      "; ask the administrator to correct agent.binary (" + to_string(agent.binary_where) +
                                                      ")");
    }
}

} // namespace

ShownDevices find_devices(const AsRoot & /*root*/, const std::vector<PolicyPath> &devices)
{
    if (devices.empty()) return {};
    NodeSearch search;
    for (const auto &entry : devices)
        search.add(entry);
    return std::move(search.found);
}

void require_can_be_shown(const Policy &policy, const PolicyPath &path)
{
    Planner planner(policy.view, policy);
    add_path(planner, path);
}

HostView plan_host_view(const Policy &policy)
{
    Planner planner(defence_is_on("minimal-view") ? policy.view : View::host, policy);
    for (const auto &shown : policy.view_paths)
        add_path(planner, shown);
    add_agent(planner, policy.agent);
    for (const char *own : {build::exec_path, build::npmrc_path}) // where pi-agent was built for another prefix
        if (!is_shown_by(policy.view, own)) planner.add(parent_of(own), "directory of pi-agent");
    struct stat facts {};
    for (const std::string &directory : system_path()) // on NixOS by symlinks in /run
        if (!is_shown_by(policy.view, directory) && stat(directory.c_str(), &facts) == 0) planner.add(directory, "host's programs");
    for (const char *place : certificate_places)
        if (stat(place, &facts) == 0) planner.add(place, "host's certificates");
    HostView view = planner.finish();
    for (const auto &directory : policy.path)
        require_on_path(view, directory);
    return view;
}

} // namespace pi_agent
