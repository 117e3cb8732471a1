// Compares the policy, and what its levels say, with the host: each part by itself, so that all that is wrong is told at once.
#include "admin/diagnose/faults.hpp"
#include "admin/state/state.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/view/root_tree.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

// What groups say between a level and the whole policy: for a user those that they are in, for a group the others, which its members may
// be in.
struct SaidByGroups {
    std::vector<PolicyPath> view_paths; // for a user
    bool path = false;
};

SaidByGroups find_said_by_groups(const Policy &policy, const UserEntry &entry)
{
    SaidByGroups said;
    if (const Rules &own = rules_of(entry.rules); !own.path && !own.view_paths) return said; // a look-up may be slow
    const auto user = entry.is_group ? std::nullopt : find_account(entry.name);
    for (const auto &[group, gid] : user ? find_entries(policy, *user).groups : std::vector<CallersEntries::OfGroup>()) {
        const auto more = rules_of(group->rules).view_paths.value_or(std::vector<PolicyPath>());
        said.view_paths.insert(said.view_paths.end(), more.begin(), more.end());
        said.path = said.path || rules_of(group->rules).path;
    }
    if (entry.is_group)
        said.path = std::ranges::any_of(policy.users, [](const UserEntry &other) { return other.is_group && rules_of(other.rules).path; });
    return said;
}

// The remedy for an element of a list.
constexpr const char *correct_list = "correct it, or take it out of the list";

void require_network(const AsRoot &root, SandboxMethod method, const NetworkPolicy &network)
{
    if (method == SandboxMethod::bwrap) require_bwrap_network(root, network);
    require_enforceable(root, network, has_unit(method));
}

// One level, in the names of the policy around it.
void look_at_level(HostCheck &check, Policy &around, const Rules &rules, const std::string &whose, const SaidByGroups &groups)
{
    const auto &problems = check.problems;
    const auto report = [&](const Position &where, const char *key, const auto &task) {
        check.report_failure(where, whose + key, correct_list, task);
    };
    for (const auto &file : rules.env_files.value_or(std::vector<PolicyPath>()))
        report(file.where, "env_files", [&] { read_managed_env_files({file}); });
    for (const auto &shown : rules.view_paths.value_or(std::vector<PolicyPath>()))
        report(shown.where, "view_paths", [&] { require_can_be_shown(around, shown); });
    const bool can_look = !problems.has(whose + "view_paths") && !problems.has("agent") && !problems.has("agent.binary");
    const bool is_own = rules.path.has_value();
    // In what these sessions see: the view paths are theirs, too. They can take away what a path of the whole policy is in.
    if (can_look && (is_own || (rules.view_paths && !groups.path && !problems.has("path")))) {
        const auto view_paths = around.view_paths;
        const auto path = around.path;
        if (rules.view_paths || !groups.view_paths.empty()) around.view_paths = rules.view_paths.value_or(groups.view_paths);
        for (const auto &directory : is_own ? *rules.path : path) {
            around.path = {directory};
            report(is_own ? directory.where : rules.places.at("view_paths").where, is_own ? "path" : "view_paths",
                   [&] { plan_host_view(around); });
        }
        around.view_paths = view_paths;
        around.path = path;
    }
    if (check.means == Means::running && rules.network && !problems.has_within("sandbox"))
        check.report_failure(rules.network->where, whose + "network", "",
                             [&] { require_network(*check.observer.root(), around.sandbox.method, *rules.network); });
}

// What users, groups and roots say for their own sessions.
void check_levels(HostCheck &check)
{
    const auto &root = check.observer.root();
    std::optional<Policy> around; // copied once, and only where there is something to look at
    const auto look = [&](const RulesPtr &rules, const std::string &whose, const SaidByGroups &groups) {
        if (!rules) return;
        check_limits(rules->limits, whose, check.problems);
        const bool names_files = rules->env_files || rules->view_paths || rules->path;
        if (!root && names_files) check.unverified.push_back(whose + "*: only root can look at the files and directories that it names");
        if (!root || (!names_files && !rules->network)) return;
        if (!around) around = check.policy;
        look_at_level(check, *around, *rules, whose, groups);
    };
    for (const auto &entry : check.policy.users) {
        look(entry.rules, entry_key(entry) + ".", root ? find_said_by_groups(check.policy, entry) : SaidByGroups());
        for (const auto &one : entry.roots)
            look(one.rules, root_key(entry, one) + ".", {});
    }
}

// --- Whether sandbox.method can work on this host, and hold sessions to the policy's network: what each start looks at, without a start.

constexpr const char *method_key = "sandbox.method";

void require_running(const AsRoot &root, const SandboxPolicy &sandbox)
{
    if (has_unit(sandbox.method)) systemd_features(SystemdBus::version_for_anybody());
    if (sandbox.method == SandboxMethod::bwrap) require_bwrap(root);
    if (sandbox.method == SandboxMethod::docker || sandbox.method == SandboxMethod::podman) require_engine(root, sandbox);
}

void check_method(HostCheck &check)
{
    const auto &policy = check.policy;
    const auto &problems = check.problems;
    const auto &sandbox = policy.sandbox;
    const auto &root = check.observer.root();
    if (problems.has_within("sandbox")) return; // the wanted method is not known
    bool has_programs = true;
    for (const auto &program : programs_of(sandbox.method)) {
        const bool is_there = check.report_failure(sandbox.where, method_key, "", [&] {
            if (const auto problem = problem_of_program(sandbox.method, program)) throw Failure(ExitStatus::unavailable, *problem);
        });
        has_programs = has_programs && is_there;
    }
    if (check.means == Means::installed || !has_programs) return;
    if (!root) {
        check.unverified.push_back(fmt::format("{} ({}): only root can ask for all that it needs", method_key, to_string(sandbox.method)));
        return;
    }
    const bool runs = check.report_failure(sandbox.where, method_key, "", [&] { require_running(*root, sandbox); });
    if (runs && !problems.has_within("network"))
        check.report_failure(policy.network.where, "network", "", [&] { require_network(*root, sandbox.method, policy.network); });
}

// --- Compares the policy with the host: each part by itself, so that it reports everything that is wrong at once.

// Why a start in a root that is there would be refused, by what is in the way of this one: what entries contradict is told once for them
// (find_refused_starts).
std::string problem_of_start(const Policy &of_groups, const UserEntry &entry, const Account &user, const std::vector<Finding> &findings,
                             const Finding &root)
{
    try {
        Policy of_user = of_groups;
        of_user.users.push_back(entry);
        const auto access = find_access_rules(of_user, user, policy_path);
        const auto *rules = std::get_if<AccessRules>(&access);
        if (rules != nullptr) dry_start(user, *rules, policy_for(of_user, *rules), findings, root);
    } catch (const Failure &failure) {
        if (failure.kind() != FailureKind::invalid_policy) return failure.what();
    }
    return "";
}

void check_roots(HostCheck &check, const Policy &of_groups, const UserEntry &entry, const Account &user, std::vector<FoundRoot> &roots)
{
    const auto findings = check.observer.resolve_roots(entry.roots, user);
    const bool are_all_there = std::all_of(findings.begin(), findings.end(), // else that one is reported
                                           [](const Finding &finding) { return finding.kind == Finding::Kind::usable; });
    for (std::size_t index = 0; index < findings.size(); ++index) {
        const auto &finding = findings[index];
        const auto &where = entry.roots[index].where;
        const auto key = root_key(entry, entry.roots[index]);
        if (check.problems.has(key)) continue; // reported already
        if (finding.is_gone) {
            check.gone.push_back({where, key, finding.text, ""});
        } else if (finding.kind == Finding::Kind::unusable) {
            check.problems.add(where, key, finding.text, "");
        } else if (finding.kind == Finding::Kind::unknown) {
            check.unverified.push_back(fmt::format("{} ({}): {}", key, entry.roots[index].text, finding.text));
        } else {
            const auto &problem = finding.file_system_problem;
            if (are_all_there && problem.empty() && finding.mapping_problem.empty())
                if (const auto refused = problem_of_start(of_groups, entry, user, findings, finding); !refused.empty())
                    check.problems.add(where, key, refused, "");
            roots.push_back({finding.text, user.name, key, where, entry.roots[index].rules != nullptr});
            if (!problem.empty()) check.warnings.push_back({where, key, "a start there may be refused: " + problem, ""});
            if (!finding.danger.empty()) check.warnings.push_back({where, key, finding.danger, finding.remedy});
        }
    }
}

void check_entry(HostCheck &check, const Policy &of_groups, const UserEntry &entry, std::vector<FoundRoot> &roots)
{
    const auto key = entry_key(entry);
    if (!is_account_name(entry.name)) return; // reported already
    const auto report = [&](const std::string &problem, const std::string &remedy) {
        check.problems.add(entry.where, key, problem, remedy);
    };
    if (entry.is_group) {
        const auto group = find_group(entry.name);
        if (!group)
            check.gone.push_back({entry.where, key, "this host has no group " + quote(entry.name), "create it, or remove the entry"});
        else if (is_privileged_group(*group))
            report(quote(entry.name) + " is a group whose members control the host (root, sudo, docker, ...), so it grants no start",
                   "name users, or another group");
        check_named_files(check, entry, std::nullopt);
        check.unverified.push_back(key + ": the roots of a group are verified for each member when that member starts pi");
        return;
    }
    const auto user = find_account(entry.name);
    if (!user) {
        check.gone.push_back({entry.where, key, "this host has no user " + quote(entry.name), "create the account, or remove the entry"});
    } else if (user->uid == Uid(0)) {
        report(quote(entry.name) + " is root under another name (uid 0)", "name an ordinary account");
    } else if (user->home == default_state_dir) {
        report(quote(entry.name) + " is an agent's account: its home is " + user->home, "name a person's account");
    } else if (const auto by_number = find_account(user->uid); by_number && by_number->name != entry.name) {
        // In another case of letters, for example, as directory services find it. A start knows its user by the number.
        report(fmt::format("this host calls the user with the uid {} {}, so nobody starts by this entry", user->uid.value(),
                           quote(by_number->name)),
               "write " + quote(by_number->name) + ", or remove the entry");
    } else {
        check_roots(check, of_groups, entry, *user, roots);
        check_named_files(check, entry, user);
    }
}

// The wrapper reads the policy with its user's rights, so a file that only root can read stops everybody.
void check_readable_by_all(const std::string &path, mode_t needed, const char *rights, Problems &problems)
{
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || (status.st_mode & needed) == needed) return; // absent: load_policy has reported it
    problems.add({path}, "", fmt::format("not readable for all users (mode {:04o}), and pi reads it as its user", status.st_mode & 07777U),
                 command_on(std::string("chmod ") + rights, path, "make the file that it leads to readable for all"));
}

void check_view(HostCheck &check)
{
    const auto &policy = check.policy;
    const auto &problems = check.problems;
    if (!check.observer.root()) {
        if (!policy.view_paths.empty())
            check.unverified.push_back("view_paths (" + to_string(policy.view_paths.front().where) + "): only root can look at them");
        return;
    }
    for (const auto &shown : policy.view_paths)
        check.report_failure(shown.where, "view_paths", correct_list, [&] { require_can_be_shown(policy, shown); });
    if (problems.has("agent") || problems.has("agent.binary")) return; // what is wrong with it is reported
    auto other = policy;
    other.view_paths.clear();
    other.path.clear();
    check.report_failure(policy.agent.binary_where, "agent.binary", "install the agent elsewhere, or correct it",
                         [&] { plan_host_view(other); });
    if (problems.has("view_paths") || problems.has("agent.binary")) return;
    other.view_paths = policy.view_paths;
    for (const auto &directory : policy.path) {
        other.path = {directory};
        check.report_failure(directory.where, "path", correct_list, [&] { plan_host_view(other); });
    }
}

struct AgentOfUser {
    std::string account, key;
    Position where;
};

void check_owner(const std::string &path, const std::string &user, const AgentOfUser &agent, const struct stat &facts, Problems &problems)
{
    if (facts.st_uid == 0) return; // a start has only begun it; the next start goes on with it
    const auto account = find_account(agent.account);
    if (account && account->uid == Uid(facts.st_uid) && account->gid == Gid(facts.st_gid)) return;
    problems.add(
        agent.where, agent.key,
        fmt::format("{} belongs to {}, but the agent of {} runs as {}{} by the policy, and cannot use it", path,
                    escape_for_display(name_or_number(Uid(facts.st_uid))), user, agent.account,
                    account ? "" : " (an account that does not exist yet)"),
        fmt::format("keep the account (run_as, agent.accounts), or start with an empty home: sudo pi-agentctl state reset --user {0} "
                    "(before that, sudo pi-agentctl state export --user {0} DIRECTORY copies the agent's sessions)",
                    name_as_word(user)));
}

// Reports each user whose next start would find that another account owns the agent's home: after a change of agent.accounts, agent.user or
// run_as.
void check_homes(HostCheck &check)
{
    const auto &state_dir = check.policy.agent.state_dir;
    // An entry of the user's own counts before those of groups. If groups contradict each other, the first counts: the start tells the
    // user.
    std::map<std::string, AgentOfUser> agents;
    const auto add = [&](const std::string &user, const UserEntry &entry) {
        agents.emplace(user, AgentOfUser{find_agent_account_name(check.policy, user, entry.run_as), entry_key(entry), entry.where});
    };
    for (const auto &entry : check.policy.users)
        if (!entry.is_group && find_account(entry.name)) add(entry.name, entry); // who is gone keeps nobody else
    for (const auto &entry : check.policy.users)
        if (entry.is_group)
            for (const auto &member : group_members(entry.name))
                if (is_account_name(member) && !is_agent_account(check.policy, member) && find_account(member)) add(member, entry);
    for (const auto &[user, agent] : agents) {
        const std::string path = agents_home(state_dir, short_name_of(user)); // root owns all but the last
        struct stat facts {};
        if (::lstat(path.c_str(), &facts) == 0) {
            check_owner(path, user, agent, facts, check.problems);
        } else if (errno == EACCES) {
            check.unverified.push_back("whose the agents' homes are: only root can look into " + state_dir);
            return;
        } else if (errno != ENOENT && errno != ENOTDIR) {
            check.problems.add(agent.where, agent.key, SystemFailure(errno, "examining " + path).what(), "");
        }
    }
}

// Which accounts the agents have follows from the section `agent` and from each entry. With a mistake in the section, it checks none; with
// a mistake in an entry, it leaves that entry out.
void check_accounts(HostCheck &check)
{
    for (const auto *key : {"agent", "agent.user", "agent.group", "agent.accounts", "agent.create_user", "users"})
        if (check.problems.has(key)) return;
    Policy policy = check.policy;
    std::erase_if(policy.users, [&](const UserEntry &entry) {
        return !is_account_name(entry.name) || check.problems.has(entry_key(entry)) || check.problems.has(entry_key(entry) + ".run_as");
    });
    check_agent_accounts(policy, needed_agent_accounts(policy), check.problems);
    if (check.means == Means::later) return;
    HostCheck of_these{policy, check.observer, check.means};
    check_homes(of_these);
    check.problems.add_all(of_these.problems.all());
    add(check.unverified, of_these.unverified);
}

} // namespace

void check_installed_files(Problems &problems)
{
    if (!build::is_system_managed && ::access(build::sudo_path, F_OK) != 0)
        problems.add({}, "", fmt::format("{} is missing, and every start of pi goes through it", build::sudo_path),
                     "install the package sudo");
    const std::string main_file = policy_path;
    const auto directory = main_file.substr(0, main_file.rfind('/'));
    check_readable_by_all(directory, S_IROTH | S_IXOTH, "a+rx", problems);
    check_readable_by_all(main_file, S_IROTH, "a+r", problems);
    check_readable_by_all(directory_of_parts(main_file), S_IROTH | S_IXOTH, "a+rx", problems);
    check_readable_by_all(directory_of_users(main_file), S_IXOTH, "a+x", problems);
    for (const auto &files : {directory_of_parts(main_file), directory_of_users(main_file)})
        for (const auto &name : list_trusted_directory(files, ".yaml", "policy directory"))
            check_readable_by_all(files + "/" + name, S_IROTH, "a+r", problems);
}

void check_host(HostCheck &check)
{
    const auto &policy = check.policy;
    const auto &problems = check.problems;
    const auto &root = check.observer.root();
    std::vector<FoundRoot> roots;
    Policy of_groups = policy; // a hundred thousand users are not copied for each of them
    std::erase_if(of_groups.users, [](const UserEntry &entry) { return !entry.is_group; });
    for (const auto &entry : policy.users)
        check_entry(check, of_groups, entry, roots);
    add(check.warnings, find_overlaps(std::move(roots)));
    if (!problems.has("agent") && !problems.has("agent.binary") && !check_agent_binary(policy, check.problems))
        check.unverified.push_back("agent.binary (" + policy.agent.binary + "): only root can look at it, for it is hidden");
    if (!problems.has_within("wrapper")) check_command_name(policy, places_of_command(), check.problems);
    const bool can_see = root && check.means != Means::installed; // an edit that names another place comes before `state move`
    if (!problems.has_within("agent")) check_state_place(policy, can_see ? &*root : nullptr, check.problems);
    check_accounts(check);
    if (check.means != Means::later) check_method(check);
    for (const auto &file : check.policy.env_files)
        if (check.observer.root())
            check.report_failure(file.where, "env_files", correct_list, [&] { read_managed_env_files({file}); });
        else
            check.unverified.push_back(file.path + " (" + to_string(file.where) + "): only root can read it");
    check_key_files(check);
    check_host_rules(policy, check.problems);
    check_view(check);
    check_limits(policy.limits, "", check.problems);
    check_disk_limits(policy, check.problems);
    check_levels(check);
}

std::vector<Diagnostic> find_what_starts_lack(const Policy &policy, const Observer &observer)
{
    HostCheck check{policy, observer, Means::installed}; // root can look at everything
    check_homes(check);
    check_method(check);
    return check.problems.all();
}

} // namespace pi_agent
