// Shows the host's directories to a session.
#include "runner/root/view/root_tree.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/environment.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

using namespace std::string_view_literals;

namespace {

DetachedMount clone_read_only(const AsRoot &root, FdRef source)
{
    return clone_mount(root, source, Submounts::take_along, MountAttributes{true, nullptr});
}

void show_read_only(const AsRoot &root, const SessionDirectory &session, const std::string &host_path, const std::string &at)
{
    const UniqueFd source = open_trusted(host_path, O_PATH, "host's");
    const bool is_directory = S_ISDIR(examine(source, "examining " + host_path).st_mode);
    if (!is_directory) session.make_directory(split_last(at).first);
    const UniqueFd target = is_directory ? session.make_directory(at) : session.make_file(at);
    attach(root, clone_read_only(root, source), target);
}

// Adds the symlinks among the host's trees to `links`.
void show_program_trees(const AsRoot &root, const SessionDirectory &session, std::map<std::string, std::string> &links)
{
    for (const std::string_view name : program_trees) {
        const std::string tree(name);
        struct stat facts {};
        if (lstat(tree.c_str(), &facts) != 0) continue; // this host does not have it
        if (S_ISLNK(facts.st_mode)) {
            const ResolvedPath end = resolve_trusted(tree, "host's");
            links.insert(end.links.begin(), end.links.end());
        } else {
            show_read_only(root, session, tree, "root" + tree);
        }
    }
}

// A host can do without each of these, so none keeps a session from starting.
void show_package_data(const AsRoot &root, const SessionDirectory &session)
{
    for (const std::string_view name : package_data) {
        const std::string tree(name);
        if (!path_exists(tree)) continue;
        try {
            show_read_only(root, session, tree, "root" + tree);
        } catch (const Failure &failure) {
            if (failure.kind() != FailureKind::untrusted) throw; // others than root can change it
        }
    }
}

// In the session's directory, where the future /run is beside the root (root_tree.cpp).
std::string place_of_link(const std::string &path)
{
    return is_within(path, "/run") ? path.substr(1) : "root" + path;
}

// `directory`: /etc, or one in it that leads to what is shown.
void show_part_of_etc(const AsRoot &root, const SessionDirectory &session, const std::string &directory, std::vector<LateMount> &late)
{
    constexpr std::size_t below = std::string_view("/etc/").size();
    session.make_directory("root" + directory);
    for (const auto &name : names_in(open_trusted(directory, O_RDONLY | O_DIRECTORY, "host's"))) {
        struct stat facts {};
        const std::string path = join_path(directory, name);
        const ShownOfEtc shown = shown_of_etc(path.substr(below));
        if (shown == ShownOfEtc::nothing || stat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) continue; // or a symlink to nothing
        if (shown == ShownOfEtc::way) {
            show_part_of_etc(root, session, path, late);
            continue;
        }
        if (has_test_seams && name == "pi-agent") { // common/seams/seams.cpp: the launcher asks there before anything comes late
            show_read_only(root, session, path, "root" + path);
            continue;
        }
        session.make_directory("root" + path);
        late.push_back({clone_read_only(root, open_trusted(path, O_PATH | O_DIRECTORY, "host's")), path});
    }
}

// apt reads what dpkg knows without these files, too, but complains. The host's files can hold passwords of sources and proxies.
void stand_in_for_apt(const SessionDirectory &session, const HostView &view)
{
    const auto is_of_apt = [](const std::string &path) { return is_within(path, "/etc/apt"); };
    const bool is_shown_besides =
        std::any_of(view.trees.begin(), view.trees.end(), is_of_apt) ||
        std::any_of(view.links.begin(), view.links.end(), [&](const auto &link) { return is_of_apt(link.first); });
    struct stat facts {};
    if (is_shown_besides || lstat("/etc/apt", &facts) != 0) return; // view_paths; or a host without apt
    for (const char *directory : {"apt.conf.d", "preferences.d", "sources.list.d"})
        session.make_directory(std::string("root/etc/apt/") + directory);
    const UniqueFd list = session.make_file("root/etc/apt/sources.list"); // empty
}

// The host's sudo could only fail inside (no new privileges), and some scripts call it by its path.
void explain_sudo(const AsRoot &root, std::vector<LateMount> &late)
{
    struct stat facts {};
    if (stat(build::sudo_path, &facts) != 0) return; // an administrator who uses another one may leave this path empty
    const std::string path = resolve_trusted(build::sudo_path, "host's sudo").canonical;
    if (is_shown(HostView{}, path))
        late.push_back(
            {clone_read_only(root, open_trusted(std::string(build::shim_directory) + "/sudo", O_PATH, "explanation of sudo")), path});
}

// Where the libraries of the distributions look for certificates; each can be a symlink to anywhere.
constexpr std::array<const char *, 6> certificate_places = {"/etc/ssl/certs",
                                                            "/etc/ssl/cert.pem",
                                                            "/etc/ssl/ca-bundle.pem",
                                                            "/etc/ssl/certs/ca-certificates.crt",
                                                            "/etc/pki/tls/certs/ca-bundle.crt",
                                                            "/etc/ssl/openssl.cnf"};

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
        if (const auto problem = problem_of_view_path(path))
            throw Failure(FailureKind::named_place,
                          "the " + what + " leads to " + escape_for_display(path) + ", which " + problem->text + "; " + problem->remedy);
        if (const auto problem = problem_beside_state(path, state_dir_); problem && defence_is_on("view-beside-state"))
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
    ResolvedPath end;
    try {
        end = resolve_trusted(directory.path, what);
    } catch (const SystemFailure &failure) {
        throw Failure(FailureKind::named_place, "the " + what + " " + escape_for_display(directory.path) + " cannot be used: " +
                                                    failure.what() + "; ask the administrator to create it or to remove it from path");
    }
    if (!end.is_directory)
        throw Failure(FailureKind::named_place, "the " + what + " " + escape_for_display(directory.path) + " is not a directory");
    if (!is_shown(view, end.canonical))
        throw Failure(FailureKind::named_place, "the " + what + " " + escape_for_display(directory.path) +
                                                    " is not shown to sessions; ask the administrator to add it to view_paths");
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

std::vector<LateMount> show_host(const AsRoot &root, const SessionDirectory &session, const HostView &view)
{
    std::vector<LateMount> late;
    std::map<std::string, std::string> links = view.links;
    show_program_trees(root, session, links);
    show_package_data(root, session);
    if (view.view == View::host)
        show_read_only(root, session, "/etc", "root/etc");
    else // late: the unit needs nothing in there, and nothing else is ever mounted there
        show_part_of_etc(root, session, "/etc", late);
    if (view.view == View::minimal) stand_in_for_apt(session, view);
    const std::string devices = "/sys/devices/system"; // processors and memory: tools choose their size by them
    session.make_directory(devices.substr(1));
    late.push_back({clone_read_only(root, open_trusted(devices, O_PATH | O_DIRECTORY, "host directory")), devices});
    explain_sudo(root, late);
    for (auto &file : protect_kernel_files(root))
        late.push_back(std::move(file));
    for (const auto &tree : view.trees)
        show_read_only(root, session, tree, "root" + tree);
    // Each once, and none inside what is shown: a symlink of a merged /usr can lead through one in /usr.
    for (const auto &link : links)
        if (std::none_of(program_trees.begin(), program_trees.end(),
                         [&](std::string_view tree) { return link.first != tree && is_within(link.first, tree); }))
            session.make_link(place_of_link(link.first), link.second);
    return late;
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
    for (const char *own : {build::exec_path, build::bash_env_path}) // where pi-agent was built for another prefix
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
