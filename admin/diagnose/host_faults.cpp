// Looks at files, accounts and file systems.
#include "admin/diagnose/faults.hpp"

#include "runner/root/errand/errand.hpp"

#include <fmt/format.h>
#include <sys/vfs.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <tuple>

namespace pi_agent {

namespace {

constexpr const char *apply = "sudo pi-agentctl apply";

// By account: in no session's unit and in no group that pi-agent made. A process may end meanwhile.
std::map<uid_t, std::vector<std::string>> stray_processes(const std::set<uid_t> &agents)
{
    std::map<uid_t, std::vector<std::string>> strays;
    for (const auto &entry : std::filesystem::directory_iterator("/proc")) {
        const std::string pid = entry.path().filename();
        struct stat facts {};
        if (pid.find_first_not_of("0123456789") != std::string::npos || stat(entry.path().c_str(), &facts) != 0) continue;
        if (!agents.contains(facts.st_uid)) continue;
        std::ifstream groups("/proc/" + pid + "/cgroup");
        std::ostringstream text;
        text << groups.rdbuf();
        const auto group = groups ? std::optional(text.str()) : std::nullopt;
        // In a slice of a user's sessions, or in a group that runner/root/kernel/control_group.cpp made. Only the beginning of the path
        // counts (`cgroups(7)`), because anybody can choose its other names.
        if (!group || (group->find(":/pi.slice/pi-agent.slice/") != std::string::npos || group->find("::/pi-agent/") != std::string::npos))
            continue;
        std::string name;
        std::getline(std::ifstream("/proc/" + pid + "/comm"), name);
        strays[facts.st_uid].push_back(pid + " (" + escape_for_display(name) + ")");
    }
    return strays;
}

// Why a root cannot be mounted for this agent; empty if it can. The mount that this makes is in no tree, and ends with this function.
std::string problem_of_root_mapping(const AsRoot &root, const std::string &path, const Account &user, const Account &agent)
{
    try {
        Child child(root, "look at a root of " + user.name, user, {}, [&](const AsUser & /*user*/, FdRef channel) {
            const auto top = UniqueFd::adopt(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
            const auto directory = open_beneath(top, path.substr(1), O_PATH | O_DIRECTORY); // canonical: a link on the way is new
            send_answer(channel, "y", {directory.get()});
        });
        const auto answer = child.receive();
        if (answer.fds.size() != 1) return "it cannot be opened";
        const auto map = make_id_map(root, user, agent);
        clone_mount(root, answer.fds.front(), Submounts::leave_out, {false, &map});
        return "";
    } catch (const Failure &failure) {
        return failure.what();
    }
}

// True if there was one: then what is below it is not a fault of its own.
bool find_state_fault(const std::string &path, bool may_be_missing, Faults &faults)
{
    struct statfs facts {};
    if (statfs(path.c_str(), &facts) != 0) {
        const SystemFailure failure(errno, "statfs");
        if (may_be_missing && failure.error_number() == ENOENT && !path_exists(path)) return false;
        faults.push_back({"state", escape_for_display(path) + " cannot be examined: " + failure.what(), apply});
        return true;
    }
    const auto name = network_file_system(static_cast<unsigned long>(facts.f_type));
    if (name.empty()) return false;
    faults.push_back(
        {"state",
         escape_for_display(path) + " lies on another host (" + name + "): its locks and owners cannot be relied on, and no session starts",
         "mount a local file system there (docs/cookbook/fleet.md)"});
    return true;
}

// Each level may be a mount of its own (runner/root/session/state_directory.cpp). Root owns all of their components except the last one of
// a home.
void find_state_faults(const Policy &policy, const AgentsOfUsers &agents, Faults &faults)
{
    const std::string users = policy.agent.state_dir + "/users";
    if (find_state_fault(policy.agent.state_dir, false, faults) || find_state_fault(users, true, faults)) return;
    for (const auto &entry : agents) {
        const std::string own = users + "/" + short_name(entry.user);
        if (find_state_fault(own, true, faults)) continue;
        for (const char *part : {"/meta", "/home", "/staging"})
            find_state_fault(own + part, true, faults);
    }
}

// --- What check tells of roots that exist: others can exchange them, they lie on another host, or they overlap.

bool is_open_to_all(const StepToRoot &step)
{
    return (step.mode & S_IWOTH) != 0;
}

std::string shown(const StepToRoot &step)
{
    return fmt::format("{} (owner {}, mode {:04o})", escape_for_display(step.path), escape_for_display(name_or_number(Uid(step.owner))),
                       step.mode & 07777U);
}

RootDanger on_another_host(FdRef directory, const std::string &path)
{
    struct statfs facts {};
    if (::fstatfs(directory.get(), &facts) != 0) return {};
    const std::string name = network_file_system(static_cast<unsigned long>(facts.f_type));
    if (name.empty()) return {};
    return {escape_for_display(path) + " lies on another host (" + name +
                "): a start there is refused unless the kernel can map its owners, and it usually cannot",
            "'sudo pi-agentctl doctor' tries it; a directory on a local disk works (docs/platforms/file-systems.md)"};
}

Diagnostic overlap_of(const FoundRoot &inner, const FoundRoot &outer)
{
    const std::string place = escape_for_display(inner.path);
    const std::string other = escape_for_display(outer.path) + " (" + outer.key + ", " + to_string(outer.where) + ")";
    const std::string relation = inner.path == outer.path ? place + " is also " + other : place + " lies in " + other;
    if (inner.user == outer.user)
        return {inner.where, inner.key, relation + ": a session there has the inner root alone, and one beside it reaches both",
                "keep one of them, unless that is what you mean"};
    return {inner.where, inner.key,
            relation + ", a root of " + outer.user + ": what the agent of one leaves there, the agent of the other reads and runs",
            "give each their own, or name a group for what they share"};
}

} // namespace

bool is_same_file(const std::string &one, const std::string &other)
{
    struct stat first {};
    struct stat second {};
    return stat(one.c_str(), &first) == 0 && stat(other.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

Faults find_open_programs(const AsRoot &root, const Policy &policy)
{
    Faults faults;
    if (!policy.wrapper.hide_direct_binary) {
        if (can_be_run_by_all(policy.agent.binary) && !is_within(policy.agent.binary, "/nix"))
            faults.push_back({"open-agent",
                              policy.agent.binary + " can be run by everybody, without the wrapper: wrapper.hide_direct_binary is false (" +
                                  to_string(policy.wrapper.where) + ")",
                              "remove that key, then " + std::string(apply)});
    } else {
        try {
            std::ostringstream text;
            Changes changes(true, text);
            hide_agent_binary(root, policy, changes);
            if (changes.count() > 0)
                faults.push_back({"open-agent", policy.agent.binary + " can be run by everybody, without the wrapper", apply});
        } catch (const SystemFailure &failure) {
            if (failure.error_number() != ENOENT) throw; // check reports once that it does not exist
        } catch (const Failure &failure) {
            faults.push_back({"open-agent", failure.what(), "install the agent again, then " + std::string(apply)});
        }
    }
    const std::string agent = policy.agent.binary;
    for (const char *directory : system_program_directories) {
        const std::string path = std::string(directory) + "/" + policy.wrapper.command_name;
        if (is_same_file(path, build::wrapper_path) || is_same_file(path, agent) || !can_be_run_by_all(path)) continue;
        faults.push_back({"other-pi", path + " is not the wrapper, and everybody can run it", "remove it, or make it root's alone"});
    }
    for (const auto &install : find_npm_installs(root, policy)) {
        if (!install.is_open) continue;
        const bool can_be_hidden = policy.wrapper.hide_direct_binary && install.why_left.empty();
        faults.push_back(
            {"other-pi",
             "npm installed the agent for everybody in " + install.path + (install.why_left.empty() ? "" : " (" + install.why_left + ")"),
             can_be_hidden ? apply
                           : (install.why_left.empty() ? "npm uninstall -g it, or close the directory to all but root"
                                                       : "npm uninstall -g it, or let only root change the way to it, without links") +
                                 ("; the policy's agent is " + agent)});
    }
    return faults;
}

Faults find_changed_files()
{
    Faults faults;
    for (const char *path : {build::wrapper_path, build::ctl_path, build::runner_path, build::exec_path, build::cleanup_path,
                             build::gate_path, build::canary_path, build::engine_door_path}) {
        try {
            const struct stat facts = examine(open_trusted(path, O_PATH, "program of pi-agent"), std::string("examining ") + path);
            if ((facts.st_mode & (S_ISUID | S_ISGID)) != 0)
                faults.push_back(
                    {"own-files", std::string(path) + " is setuid or setgid, and no program of pi-agent is", "install pi-agent again"});
        } catch (const Failure &failure) {
            faults.push_back({"own-files", failure.what(), "install pi-agent again"});
        }
    }
    return faults;
}

Faults find_account_faults(const std::map<std::string, UsersOfAgent> &agents)
{
    Faults faults;
    std::set<uid_t> uids;
    for (const auto &[account, of] : agents)
        uids.insert(of.uid.value());
    const auto all_strays = stray_processes(uids); // one look through all processes
    for (const auto &[account, of] : agents) {
        if (const auto &names = of.users; names.size() > 1)
            faults.push_back(
                {"shared-account",
                 joined(names, ", ") + " share the account " + account + ": what one's agent has, the others' can read and change",
                 "agent: {accounts: per-user} in the policy, or run_as for each"});
        const std::vector<std::string> no_crontab = {"crontab", "-r", "-u", account};
        const std::vector<std::string> no_lingering = {"loginctl", "disable-linger", account};
        const std::vector<std::tuple<std::string, const char *, std::vector<std::string>>> places = {
            {"/var/spool/cron/crontabs/" + account, "a crontab", no_crontab},
            {"/var/spool/cron/" + account, "a crontab", no_crontab},
            {"/var/lib/systemd/linger/" + account, "lingering services", no_lingering}};
        for (const auto &[path, what, removal] : places) {
            struct stat facts {};
            if (lstat(path.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode))
                faults.push_back({"outside-sessions", account + " has " + what + " (" + path + "): it runs outside of every sandbox",
                                  command_about(account, removal, "remove it, or give the agent an account of its own")});
        }
        if (const auto strays = all_strays.find(of.uid.value()); strays != all_strays.end())
            faults.push_back({"outside-sessions", "processes of " + account + " run in no session: " + joined(strays->second, ", "),
                              "find out who started them, and end them"});
    }
    return faults;
}

Faults find_file_system_faults(const AsRoot &root, const Policy &policy, const AgentsOfUsers &agents, const Observer &observer)
{
    Faults faults;
    find_state_faults(policy, agents, faults);
    for (const auto &idle : find_idle_disk_limits(policy))
        if (idle.choice == WithoutQuota::tell)
            faults.push_back({"disk", to_string(idle.told), "or let no session start: limits: {disk_without_quota: refuse}"});
    for (const auto &[user, agent, rules] : agents) {
        for (const auto &link : observer.links_out(policy, rules, user))
            faults.push_back({"link", "a start of " + user.name + " leaves out " + link, "ask " + user.name + " to do so"});
        if (policy.projects.ownership == ProjectOwnership::none) continue; // nothing is mapped
        for (const auto &finding : observer.resolve_roots(rules, user)) {
            if (finding.kind != Finding::Kind::usable) continue; // check has reported it
            if (const auto problem = problem_of_root_mapping(root, finding.text, user, agent); !problem.empty())
                faults.push_back({"root",
                                  "the root " + escape_for_display(finding.text) + " of " + user.name +
                                      " cannot be mapped to the agent's account: " + problem,
                                  "move it to a file system that can be id-mapped (docs/platforms/file-systems.md)"});
        }
    }
    return faults;
}

Faults find_leftovers(const AsRoot &root)
{
    std::vector<std::string> orphans;
    try {
        orphans = find_orphans(root);
        if (!orphans.empty()) { // looks again: a session that ends just now is not an orphan
            std::this_thread::sleep_for(std::chrono::seconds(2));
            const auto still = find_orphans(root);
            std::erase_if(orphans, [&](const auto &id) { return std::ranges::find(still, id) == still.end(); });
        }
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != ENOENT) throw; // no session since the host was started
    }
    Faults faults;
    if (read_unfinished(root)) faults.push_back({"unfinished", unfinished_change, apply});
    if (!orphans.empty())
        faults.push_back({"leftovers",
                          "sessions that are gone left their directories and mounts in " + std::string(sessions_directory) + ": " +
                              joined(orphans, ", "),
                          "the next start of pi removes them; journalctl PI_AGENT_EVENT=problem has why they are there"});
    return faults;
}

RootDanger danger_of_way(const std::vector<StepToRoot> &way, const Account &user)
{
    const std::string remedy = "let only root and " + user.name + " write there, or choose another place";
    const auto is_strange = [&](const StepToRoot &step) { return step.owner != 0 && Uid(step.owner) != user.uid; };
    const auto owner_of = [](const StepToRoot &step) { return escape_for_display(name_or_number(Uid(step.owner))); };
    for (std::size_t index = 0; index < way.size(); ++index) {
        const StepToRoot &step = way[index];
        const bool is_root = index + 1 == way.size();
        if (is_root && is_open_to_all(step))
            return {"everybody can write to " + shown(step) + ": the agent reads and obeys what they leave there", remedy};
        // In a directory with the sticky bit, only owners exchange what is theirs.
        if (!is_root && is_open_to_all(step) && !((step.mode & S_ISVTX) != 0))
            return {"everybody can write to " + shown(step) + ", and so put another directory in the root's place", remedy};
        // The owner of a directory can write to it, whatever its mode is. A root's own owner is who it is for.
        if (!is_root && is_strange(step))
            return {owner_of(step) + " can write to " + shown(step) + ", and so put another directory in the root's place", remedy};
        if (is_root && is_strange(step) && index > 0 && is_open_to_all(way[index - 1]))
            return {owner_of(step) + " can put another directory in the root's place: everybody can write to " + shown(way[index - 1]),
                    remedy};
    }
    return {};
}

RootDanger danger_of_root(FdRef directory, const std::string &path, const Account &user)
{
    if (auto elsewhere = on_another_host(directory, path); !elsewhere.problem.empty()) return elsewhere;
    std::vector<StepToRoot> way;
    for (std::string step = path;; step = parent_of(step)) {
        struct stat facts {};
        if (::lstat(step.c_str(), &facts) != 0) return {};
        way.push_back({step, facts.st_uid, facts.st_mode});
        if (step == "/") break;
    }
    std::ranges::reverse(way);
    return danger_of_way(way, user);
}

std::vector<Diagnostic> find_misplaced(const AsRoot & /*root*/, const Policy &policy)
{
    std::vector<Diagnostic> found;
    const auto is_one = [&](const std::string &path, mode_t kind, const std::string &whose) {
        struct stat facts {};
        const bool is_there = lstat(path.c_str(), &facts) == 0;
        if (is_there && (facts.st_mode & S_IFMT) != kind)
            found.push_back({{},
                             "",
                             escape_for_display(path) + " is not a " + (kind == S_IFDIR ? "directory" : "regular file") +
                                 ", so no session" + whose + " starts",
                             "look at it, and move it away"});
        return is_there && (facts.st_mode & S_IFMT) == kind;
    };
    is_one(join_path(parent_of(sessions_directory), drain_name), S_IFREG, "");
    const std::string users = policy.agent.state_dir + "/users";
    if (!is_one(users, S_IFDIR, "")) return found;
    for (const auto &name : names_in(open_trusted(users, O_RDONLY | O_DIRECTORY, "directory of the agents' homes"))) {
        const std::string own = join_path(users, name);
        const std::string whose = " of " + escape_for_display(name);
        if (!is_one(own, S_IFDIR, whose)) continue;
        for (const char *part : {"/home", "/meta", "/staging"})
            is_one(own + part, S_IFDIR, whose);
        for (const char *part : {"/meta/lock", "/meta/manifest", "/meta/manifest.new", "/meta/version"})
            is_one(own + part, S_IFREG, whose);
    }
    return found;
}

std::vector<Diagnostic> find_overlaps(std::vector<FoundRoot> roots)
{
    // With "/" before every other byte, what is in a directory follows it at once.
    const auto before = [](const FoundRoot &one, const FoundRoot &other) {
        return std::lexicographical_compare(
            one.path.begin(), one.path.end(), other.path.begin(), other.path.end(), [](char left, char right) {
                const auto rank = [](char byte) { return byte == '/' ? 0 : static_cast<unsigned char>(byte); };
                return rank(left) < rank(right);
            });
    };
    std::ranges::stable_sort(roots, before);
    Problems found; // at most as many as anybody reads
    std::vector<const FoundRoot *> above;
    for (const auto &root : roots) {
        while (!above.empty() && !is_within(root.path, above.back()->path))
            above.pop_back();
        // What a policy says of one's own inner root is what it is there for.
        const bool is_meant = !above.empty() && root.has_rules && root.user == above.back()->user && root.path != above.back()->path;
        if (!above.empty() && !is_meant) {
            const auto overlap = overlap_of(root, *above.back());
            found.add(overlap.where, overlap.key, overlap.problem, overlap.remedy);
        }
        above.push_back(&root);
    }
    return found.all();
}

} // namespace pi_agent
