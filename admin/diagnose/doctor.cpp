// Asks everything that can be asked, the cluster and each part's version among it, and reports it at once.
#include "admin/diagnose/faults.hpp"

#include "admin/programs/program.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/text/terminal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <iostream>

namespace pi_agent {

namespace {

constexpr int cluster_patience_seconds = 20; // Slurm's programs give up after ten

// Where the first level says that sessions have jobs.
std::optional<SaidAt> first_with_jobs(const Policy &policy)
{
    std::optional<SaidAt> first;
    each_level(policy, [&](const Rules &rules, const std::string & /*whose*/) {
        if (!first && rules.placement.engine == PlacementEngine::slurm) first = rules.places.at("placement.engine");
    });
    return first;
}

bool has_srun(const Policy &policy)
{
    return access(srun_of(policy).c_str(), X_OK) == 0;
}

Faults find_cluster_faults(const Policy &policy)
{
    if (!has_srun(policy) || !has_program("sinfo")) return {};
    const std::string remedy = "find out with sinfo and 'systemctl status slurmctld' why, or say placement: {engine: none}";
    const auto result = run_program_apart({"sinfo", "--noheader", "--format=%D"}, cluster_patience_seconds);
    if (result.status != 0)
        return {{"cluster", "Slurm does not answer, so pi gets no node: " + escape_for_display(one_line(result.output)), remedy}};
    if (result.output.find_first_of("123456789") == std::string::npos) return {{"cluster", "Slurm's cluster has no nodes", remedy}};
    return {};
}

// --- Asks each part for its version.

constexpr int agent_patience_seconds = 30;

// What a part says of its version, or why it is not known.
template <typename Ask>
nlohmann::json answer_of(const Ask &ask)
{
    try {
        return {{"version", ask()}};
    } catch (const Failure &failure) {
        return {{"version", nullptr}, {"problem", failure.what()}};
    }
}

// The program belongs to root, but its behaviour is its own: it runs as another account, without a terminal, and for a limited time.
std::string ask_program(const AsRoot &root, const Policy &policy)
{
    // It runs as the agent's account and outside of every sandbox, so no agent may run inside one at the same time.
    if (!live_sessions(root).empty()) throw Failure(ExitStatus::unavailable, "agents are running; ask again when none runs");
    for (const auto &needed : needed_agent_accounts(policy)) {
        const auto account = find_account(needed.name);
        if (!account || account->uid == Uid(0)) continue;
        const auto group = find_group(policy.agent.group).value_or(account->gid); // it may be hidden from everybody else
        const auto result = run_confined_to_group(root, account->uid,
                                                  {"setpriv", "--reuid", std::to_string(account->uid.value()), "--regid",
                                                   std::to_string(group.value()), "--clear-groups", "--no-new-privs", "--bounding-set=-all",
                                                   "--inh-caps=-all", "--reset-env", "env", "--chdir=/", policy.agent.binary, "--version"},
                                                  agent_patience_seconds);
        if (result.status == 0) return one_line(result.output);
        throw Failure(ExitStatus::unavailable, policy.agent.binary + " --version ended with status " + std::to_string(result.status) +
                                                   ": " + one_line(result.output));
    }
    throw Failure(ExitStatus::unavailable, "no agent's account exists yet; run 'sudo pi-agentctl apply'");
}

std::string ask_agent()
{
    const auto observer = Observer::self();
    if (!observer.root()) throw Failure(ExitStatus::denied, "only root can ask the agent's program, which is hidden from others");
    return ask_program(*observer.root(), load_policy(policy_path));
}

// --- Asks everything that can be asked, and reports all of it at once.

// Prints on a terminal what it does, and turns what keeps it from that into a fault.
void look(const std::string &doing, Faults &faults, const std::function<Faults()> &find)
{
    if (isatty(STDERR_FILENO) == 1) std::cerr << "pi-agentctl: " << doing << "..." << std::endl;
    try {
        add(faults, find());
    } catch (const PolicyError &error) {
        for (const auto &diagnostic : error.diagnostics())
            faults.push_back({"policy", to_string(diagnostic), "correct it; pi-agentctl check says the same"});
    } catch (const std::exception &failure) {
        faults.push_back({"doctor", doing + " failed: " + failure.what(), "without it nothing is known of this"});
    }
}

AgentsOfUsers agents_of(const Policy &policy, const std::vector<std::string> &names)
{
    Policy of_all = policy;
    of_all.users.clear();
    AgentsOfUsers agents;
    for (const auto &name : names) {
        const auto user = find_account(name);
        if (!user) continue; // check has reported it
        try {
            const auto access = find_access_rules(policy, *user, policy_path);
            const auto *rules = std::get_if<AccessRules>(&access);
            const auto agent = rules == nullptr ? std::nullopt : find_account(rules->agent_account);
            if (agent) policy_for(of_all, *rules);
            if (agent) agents.push_back({*user, *agent, *rules});
        } catch (const PolicyError &) { // NOLINT(bugprone-empty-catch): a contradiction, found above, that concerns nobody else
        }
    }
    return agents;
}

// A shell, a sudo configuration and roots are asked for each of these: users with an entry of their own, and of those who come by a group
// a few, who have used pi if there are any.
constexpr std::size_t most_members = 5;

std::vector<std::string> users_to_ask(const Policy &policy, const std::vector<std::string> &users, const std::optional<std::string> &asked)
{
    std::set<std::string> own;
    for (const auto &entry : policy.users)
        if (!entry.is_group) own.insert(entry.name);
    if (asked) own.insert(*asked);
    std::vector<std::string> names, members;
    for (const auto &name : users)
        (own.contains(name) ? names : members).push_back(name);
    std::ranges::stable_partition(members, [&](const std::string &name) {
        struct stat facts {};
        return ::lstat(agents_home(policy.agent.state_dir, short_name_of(name)).c_str(), &facts) == 0;
    });
    members.resize(std::min(members.size(), most_members));
    add(names, members);
    return names;
}

std::map<std::string, UsersOfAgent> accounts_of(const Policy &policy, const std::vector<std::string> &users)
{
    std::map<std::string, UsersOfAgent> accounts;
    for (const auto &name : users) {
        const auto user = find_account(name);
        const auto rules = user ? rules_of_user(policy, *user) : std::nullopt;
        if (const auto agent = rules ? find_account(rules->agent_account) : std::nullopt)
            accounts.try_emplace(agent->name, UsersOfAgent{agent->uid, {}}).first->second.users.push_back(name);
    }
    return accounts;
}

Faults find_faults(const AsRoot &root, const Policy &policy, const Observer &observer, const std::vector<std::string> &users,
                   const std::vector<std::string> &asked, AgentsOfUsers &agents)
{
    Faults faults;
    look("holding the policy against the host", faults, [&] {
        HostCheck check{policy, observer};
        check_installed_files(check.problems);
        check_host(check);
        check.problems.add_all(check.gone);
        check.problems.add_all(find_refused_starts(policy));
        check.problems.throw_if_any();
        return Faults{};
    });
    if (policy.sandbox.method == SandboxMethod::none)
        faults.push_back({"no-sandbox",
                          "sandbox.method is 'none' (" + to_string(policy.sandbox.where) +
                              "): an agent reaches this host's processes, devices and services as its account does",
                          "choose systemd, bwrap or podman, unless the host itself is what confines agents (docs/platforms/methods.md)"});
    look("looking at accounts", faults, [&] {
        agents = agents_of(policy, asked);
        const auto missing = find_missing(policy, needed_agent_accounts(policy));
        const std::string remedy = policy.agent.create_user ? "sudo pi-agentctl apply" : "create it (agent.create_user is false)";
        Faults found;
        if (missing.group) found.push_back({"agent-account", "this host has no group " + policy.agent.group + " for the agents", remedy});
        for (const auto &agent : missing.accounts) {
            const std::string who = agent.user.empty() ? "" : ", and so " + agent.user + " cannot start pi";
            found.push_back({"agent-account", "this host has no account " + agent.name + who, remedy});
        }
        for (const auto &member : missing.members)
            found.push_back({"agent-account", "the account " + member + " is not in the group " + policy.agent.group,
                             policy.agent.create_user
                                 ? remedy
                                 : command_about(member, {"usermod", "-aG", policy.agent.group, member}, "make it a member of the group")});
        add(found, find_account_faults(accounts_of(policy, users)));
        return found;
    });
    look("looking for other ways to the agent", faults, [&] { return find_open_programs(root, policy); });
    look("looking at pi-agent's own files", faults, [&] { return find_changed_files(); });
    look("reading the sudo configuration", faults, [&] { return find_sudo_faults(root, policy, asked); });
    look("looking at file systems", faults, [&] { return find_file_system_faults(root, policy, agents, observer); });
    if (first_with_jobs(policy)) look("asking the cluster", faults, [&] { return find_cluster_faults(policy); });
    look("looking for what sessions left", faults, [&] { return find_leftovers(root); });
    const auto wrapper = names_of_wrapper(policy.wrapper.command_name, build::wrapper_path);
    for (const auto &agent : agents)
        look("asking the login shell of " + agent.user.name, faults,
             [&] { return find_user_faults(root, agent.user, policy.wrapper.command_name, wrapper); });
    return faults;
}

// A key that nobody wrote is easily overlooked.
std::string open_network_note(const Policy &of_all, const AgentsOfUsers &agents)
{
    constexpr std::size_t most = 5;
    std::vector<std::string> open;
    std::string where;
    for (const auto &[user, agent, rules] : agents) {
        const auto network = policy_for(of_all, rules).network;
        if (network.mode != NetworkMode::full) continue;
        open.push_back(user.name);
        if (where.empty()) where = network.where.file.empty() ? "the default" : to_string(network.where);
    }
    if (open.empty()) return "";
    const std::string more = open.size() > most ? fmt::format(" and {} more", open.size() - most) : "";
    open.resize(std::min(open.size(), most));
    return fmt::format("network: full ({}): the agents of {}{} can send what they read to anybody, with every key that they have; "
                       "'network: {{hosts: [...]}}' names whom they reach (docs/concepts/network.md)",
                       where, fmt::join(open, ", "), more);
}

// What their starts leave out, and report once; and that they are refused for now: not a fault of this host.
std::vector<std::string> find_notes(const Policy &policy, const Observer &observer, const AgentsOfUsers &agents)
{
    std::vector<std::string> notes;
    if (auto drained = drain_note(*observer.root()); !drained.empty())
        notes.push_back(std::move(drained) + "; to end that: sudo pi-agentctl drain --off");
    Policy of_all = policy;
    of_all.users.clear(); // a hundred thousand are not copied for each of them
    if (auto open = open_network_note(of_all, agents); !open.empty()) notes.push_back(std::move(open));
    for (const auto &[user, agent, rules] : agents) {
        const std::string home = agents_home(policy.agent.state_dir, short_name(user));
        const Policy own = policy_for(of_all, rules);
        for (const auto &note : explain_environment(own, rules, observer, user, home).notes)
            notes.push_back(user.name + ": " + note);
        const auto toolchains = explain_toolchains(own.toolchains, observer, user, rules);
        for (const auto *directories : {&toolchains.readable, &toolchains.caches})
            for (const auto &directory : *directories)
                if (directory.finding.kind == Finding::Kind::unusable && !directory.finding.text.empty())
                    notes.push_back(fmt::format(
                        "{}: not shown to the agent: {} ({}): {}", user.name, escape_for_display(written_home_path(directory.path)),
                        key_of_home_directory(own.rules, directory.path, directories == &toolchains.caches), directory.finding.text));
    }
    return notes;
}

std::string to_text(const Faults &faults)
{
    return joined(faults, "",
                  [](const Fault &fault) { return fmt::format("{}: {}\n  remedy: {}\n", fault.about, fault.what, fault.remedy); });
}

std::string conclusion(const Policy &policy)
{
    constexpr const char *starts = "nothing that keeps anybody from starting pi\n";
    if (policy.wrapper.hide_direct_binary || !can_be_run_by_all(policy.agent.binary))
        return std::string("no way around the wrapper was found, and ") + starts;
    return fmt::format(
        "everybody can run {} without the wrapper (wrapper.hide_direct_binary is false, {}); beside that no way around it was "
        "found, and {}",
        policy.agent.binary, to_string(policy.wrapper.where), starts);
}

} // namespace

std::vector<Diagnostic> find_idle_placement(const Policy &policy)
{
    if (first_with_jobs(policy)) return {};
    std::vector<Diagnostic> found;
    each_level(policy, [&](const Rules &rules, const std::string & /*whose*/) {
        for (const auto *key : {"placement.srun", "placement.partition", "placement.account", "placement.qos", "placement.constraint"})
            if (const auto said = rules.places.find(key); said != rules.places.end())
                found.push_back({said->second.where, said->second.key, "says which job, and no session has one",
                                 "say 'engine: slurm', or remove the key"});
    });
    return found;
}

std::vector<Diagnostic> find_missing_cluster(const Policy &policy)
{
    const auto place = first_with_jobs(policy);
    if (!place || has_srun(policy)) return {};
    return {{place->where, place->key,
             "slurm, and this host has no " + escape_for_display(srun_of(policy)) + ": sessions start here inside of jobs alone",
             "install Slurm's client if users shall type pi here, or correct placement.srun"}};
}

std::string placement_text(const Policy &policy)
{
    if (!has_jobs(policy)) return "";
    const auto options = mapped(job_options(policy, job_name), [&](const auto &option) { return escape_for_display(option); });
    return fmt::format("runs:     in a job of Slurm's on a node of the cluster, and by the policy of that node\n"
                       "          ({}: {} {})\n",
                       to_string(policy.rules.places.at("placement.engine").where), escape_for_display(srun_of(policy)),
                       fmt::join(options, " "));
}

void run_version(bool json, std::ostream &out)
{
    utsname names{};
    if (::uname(&names) != 0) throw_errno("asking for the kernel's version");
    const nlohmann::json answers = {{"pi_agent", {{"version", to_string(running_version())}}},
                                    {"systemd", answer_of(SystemdBus::version_for_anybody)},
                                    {"kernel", {{"version", std::string(names.sysname) + " " + names.release}}},
                                    {"agent", answer_of(ask_agent)}};
    if (json) return print_json(answers, out);
    for (const auto &[label, part] :
         {std::pair{"pi-agent: ", "pi_agent"}, {"systemd:  ", "systemd"}, {"kernel:   ", "kernel"}, {"agent:    ", "agent"}}) {
        const auto &answer = answers[part];
        const bool is_known = answer["version"].is_string();
        out << label << (is_known ? "" : "not known: ") << answer[is_known ? "version" : "problem"].get<std::string>() << '\n';
    }
}

void run_doctor(const DoctorOptions &options, std::ostream &out)
{
    const auto observer = Observer::self();
    if (!observer.root())
        throw Failure(FailureKind::root_only,
                      "doctor looks at every user's access and starts a session, so only root can run it" + for_administrator("doctor"));
    const auto policy = load_policy(policy_path);
    if (!policy.wrapper.enable)
        throw Failure(FailureKind::doctor_found, to_string(policy.wrapper.where) + ": wrapper.enable is false, so nobody can start pi");
    AgentsOfUsers agents;
    const auto users = users_of(policy);
    const auto asked = users_to_ask(policy, users, options.user);
    auto faults = find_faults(*observer.root(), policy, observer, users, asked, agents);
    std::vector<std::string> notes;
    look("looking at what starts leave out", faults, [&] {
        notes = find_notes(policy, observer, agents);
        if (asked.size() < users.size())
            notes.push_back(fmt::format("of {} users, shells, sudo rules and roots of {} were looked at; of another one: sudo pi-agentctl "
                                        "doctor --user NAME",
                                        users.size(), asked.size()));
        return Faults{};
    });
    CanaryReport report;
    try {
        const bool may_hang = std::ranges::any_of(faults, [](const Fault &fault) { return fault.about == "sudo-start"; });
        report = run_canary(policy, observer, options.user, may_hang);
        if (const auto *answer = report.closed_proxy())
            faults.push_back({"proxy", escape_for_display(answer->what) + " opens no tunnel, but says: " + escape_for_display(answer->seen),
                              "see 'pi-agentctl denials' for what that means; correct network.via, its login, or the proxy"});
    } catch (const Failure &failure) {
        if (faults.empty()) throw;
        faults.push_back({"sandbox", failure.what(), "name a user who may start pi, or none"}); // the others are worth more
    }
    const bool good = faults.empty() && report.is_good();
    if (options.json) {
        const nlohmann::json list = mapped(faults, [](const Fault &fault) {
            return nlohmann::json{{"about", fault.about}, {"what", fault.what}, {"remedy", fault.remedy}};
        });
        print_json({{"good", good}, {"faults", list}, {"sandbox", to_json(report)}, {"notes", notes}}, out);
    } else {
        for (const auto &answer : options.attack ? report.answers : std::vector<CanaryAnswer>())
            out << (answer.right ? "held  " : "WRONG ") << escape_for_display(answer.what) << ": " << escape_for_display(answer.seen)
                << '\n';
        for (const auto &note : notes)
            out << "note: " << note << '\n';
        if (good) out << to_text(report) << '\n' << conclusion(policy);
    }
    if (good) return;
    if (options.json) throw Failure(FailureKind::doctor_found, "doctor found faults, or a sandbox that does not hold");
    throw Failure(FailureKind::doctor_found, to_text(faults) + to_text(report));
}

} // namespace pi_agent
