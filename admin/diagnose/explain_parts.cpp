// The parts of an explanation, by the same functions that compose a start: environment, limits, disk, system calls.
#include "admin/diagnose/explain.hpp"

#include "admin/text/terminal.hpp"
#include "runner/as_user/project.hpp"
#include "runner/root/errand/errand.hpp"

#include <fmt/format.h>

namespace pi_agent {

// limits.disk as it is explained and checked: whether a quota of this host holds agents to it, and what starts do where none does.

namespace {

// Under the name of each of these another part of the state may be mounted.
constexpr std::array parts_of_state = {"", "/users", "/sessions"};

// As problem_of_quotas() for the places of a state directory that exist, and for the method. `policy` has limits.disk. The place of a user
// that is a mount of its own is looked at by their starts.
std::string problem_of_disk_limit(const Policy &policy)
{
    if (auto problem = problem_of_method(policy.sandbox.method); !problem.empty()) return problem;
    for (const char *part : parts_of_state) {
        const std::string path = policy.agent.state_dir + part;
        const UniqueFd place = open_if_there("opening " + path, FdRef(AT_FDCWD), path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
        if (!place) continue; // nothing was applied yet, or nobody started
        if (const std::string problem = problem_of_quotas(place); !problem.empty()) return path + ": " + problem + "; " + quota_remedy;
    }
    return "";
}

// --- The parts of an explanation: the environment, by the same functions that compose it; the limits in force, who set them, and which of
// them this host does not enforce; toolchains and caches; what git and the agent are told.

// A file that makes a start fail is a note of the explanation.
template <typename Look>
void note_failure(ExplainedEnvironment &environment, const Look &look)
{
    try {
        look();
    } catch (const Failure &failure) {
        environment.notes.push_back(std::string("no start is possible: ") + failure.what());
    }
}

// "tasks" of limits.tasks.
std::string name_of(const LimitRow &row)
{
    return std::string(row.key).substr(std::string_view("limits.").size());
}

// No path is in both lists.
Finding finding_of(const OpenedHome &home, const std::string &path)
{
    const auto found = std::ranges::find_if(home.directories, [&](const HomeDirectory &one) { return one.path == path; });
    if (found == home.directories.end()) return {Finding::Kind::unusable, ""};
    return {found->problem.empty() ? Finding::Kind::usable : Finding::Kind::unusable, found->problem};
}

const char *state_of(const Finding &finding)
{
    if (finding.kind == Finding::Kind::unknown) return "not verified";
    return finding.kind == Finding::Kind::usable ? "shown" : finding.text.empty() ? "missing" : "not shown";
}

std::string name_of(const ExplainedHomeDirectory &one)
{
    const std::string path = escape_for_display(written_home_path(one.path));
    if (one.path.starts_with('/')) return path;
    if (one.inside.empty()) return path + " (inside: by its own path alone)";
    return one.inside == one.path ? path : path + " (inside: ~/" + escape_for_display(one.inside) + ")";
}

// The default list is long: of its entries, says only how many are in no home.
std::string names_of(const std::vector<ExplainedHomeDirectory> &directories, const std::string &state)
{
    std::string names;
    std::size_t others = 0;
    for (const auto &one : directories)
        if (state_of(one.finding) == state && state != "shown" && one.is_default)
            ++others;
        else if (state_of(one.finding) == state)
            names += (names.empty() ? "" : ", ") + name_of(one);
    if (others > 0) names += fmt::format("{}{} of the default list", names.empty() ? "" : ", and ", others);
    return names;
}

std::string text_of(const std::vector<ExplainedHomeDirectory> &directories, const char *label, const char *what)
{
    if (directories.empty()) return fmt::format("{} none of the user's home\n", label);
    const std::string shown = names_of(directories, "shown");
    std::string text = fmt::format("{} {}: {}\n", label, what, shown.empty() ? "none that is there" : shown);
    if (const std::string missing = names_of(directories, "missing"); !missing.empty())
        text += fmt::format("          missing: {}\n", missing);
    if (const std::string unknown = names_of(directories, "not verified"); !unknown.empty())
        text += fmt::format("          not verified ({}): {}\n", directories.front().finding.text, unknown);
    for (const auto &one : directories)
        if (state_of(one.finding) == std::string("not shown"))
            text += fmt::format("          not shown: {}: {}\n", name_of(one), one.finding.text);
    return text;
}

nlohmann::json json_of(const std::vector<ExplainedHomeDirectory> &directories)
{
    nlohmann::json list = nlohmann::json::array();
    for (const auto &one : directories) {
        nlohmann::json entry = {{"path", written_home_path(one.path)}, {"own_path", one.is_at_own_path}, {"state", state_of(one.finding)}};
        entry["inside"] = one.inside.empty() ? nlohmann::json() : nlohmann::json("~/" + one.inside);
        if (!one.finding.text.empty()) entry["reason"] = one.finding.text;
        list.push_back(std::move(entry));
    }
    return list;
}

} // namespace

std::string find_disk_problem(const Policy &policy)
{
    return policy.limits.disk ? problem_of_disk_limit(policy) : "";
}

std::vector<IdleDiskLimit> find_idle_disk_limits(const Policy &policy)
{
    std::vector<IdleDiskLimit> found;
    std::optional<std::string> problem; // the same for each level: it is one of the host, and of the method
    const auto look_at = [&](const Rules &rules, const std::string &whose) {
        const auto &own = rules.limits;
        const auto &disk = own.disk ? own.disk : policy.limits.disk;
        if (!disk || (!own.disk && !own.without_quota)) return;
        if (!problem) problem = problem_of_disk_limit(policy);
        if (problem->empty()) return;
        const char *key = own.disk ? "limits.disk" : "limits.disk_without_quota";
        const auto place = rules.places.find(key);
        const auto choice = own.without_quota ? own.without_quota : policy.limits.without_quota;
        found.push_back(
            {{place == rules.places.end() ? disk->where : place->second.where, whose + key,
              disk->text + (choice == WithoutQuota::refuse ? " cannot be enforced on this host: " : " is not enforced: ") + *problem,
              choice == WithoutQuota::refuse ? "or remove the key" : ""},
             choice.value_or(WithoutQuota::tell)});
    };
    look_at(policy.rules, "");
    for (const auto &entry : policy.users)
        if (entry.rules) look_at(*entry.rules, entry_key(entry) + ".");
    return found;
}

void check_disk_limits(const Policy &policy, Problems &problems)
{
    for (const auto &idle : find_idle_disk_limits(policy))
        if (idle.choice == WithoutQuota::refuse) problems.add(idle.told.where, idle.told.key, idle.told.problem, idle.told.remedy);
}

ExplainedEnvironment explain_environment(const Policy &policy, const AccessRules &rules, const Observer &observer, const Account &user,
                                         const std::string &home)
{
    ExplainedEnvironment environment;
    EnvironmentInput input{{}, {}, policy.env, {}, rules.env, home, rules.agent_account, policy.agent.binary, "ID"};
    input.path = policy.path;
    hold_outside(input, policy);
    if (policy.network.mode == NetworkMode::hosts) input.gate.merge(gate_environment());
    AgentPlaces agents;
    note_failure(environment, [&] {
        if (observer.can_look_for(user)) agents = observer.agent_places(policy, rules, user);
        HostVariables variables = !observer.can_look_for(user)
                                      ? HostVariables{{}, {"only root or " + user.name + " can read the user's own files"}}
                                  : observer.root() ? ask_host_env_files(*observer.root(), user, policy.host_env_files, agents)
                                                    : read_host_env_files(UserPaths(agents), policy.host_env_files, user.home);
        input.host_files = std::move(variables.assignments);
        environment.notes = std::move(variables.notices);
    });
    if (observer.root())
        note_failure(environment, [&] { input.managed_files = read_managed_env_files(policy.env_files); });
    else
        for (const auto &file : policy.env_files)
            environment.notes.push_back(file.path + " (" + to_string(file.where) + ") sets more; only root can read it");
    name_git_config(input);
    if (rules.ssh_key) name_ssh_command(input);
    if (rules.signing_key) name_signing_key(input);
    keep_from_downloading(input, policy.network, missing_search_tools());
    CertificateFiles certificates;
    if (observer.can_look_for(user)) { // the project's own directory is not known here: a file in it counts as one that is copied
        HostView places{policy.view, {}, {}};
        for (const auto &path : policy.view_paths)
            places.trees.insert(path.path);
        const ShownPlaces shown{places, home, home};
        const auto named = find_certificate_variables(input);
        certificates = observer.root() ? ask_certificate_files(*observer.root(), user, named, shown, agents)
                                       : read_certificate_files(UserPaths(agents), named, shown);
    }
    input.certificates_inside = std::move(certificates.renamed);
    environment.notes.insert(environment.notes.end(), certificates.notices.begin(), certificates.notices.end());
    for (const auto &[name, variable] : layer_environment(input)) {
        const bool hidden = looks_secret(name, variable.value);
        environment.variables.push_back({name, hidden ? "" : variable.value, hidden, variable.from});
    }
    return environment;
}

std::string to_text(const ExplainedEnvironment &environment)
{
    std::string text = "variables, and what sets them (what the shell says of its terminal is lowest: TERM, LANG, …):\n";
    for (const auto &variable : environment.variables)
        text += fmt::format("  {}={} ({})\n", variable.name, variable.is_hidden ? "(hidden)" : escape_for_display(variable.value),
                            escape_for_display(variable.from));
    for (const auto &note : environment.notes)
        text += fmt::format("  {}\n", note);
    return text;
}

nlohmann::json to_json(const ExplainedEnvironment &environment)
{
    nlohmann::json json = {{"variables", nlohmann::json::object()}, {"notes", environment.notes}};
    for (const auto &variable : environment.variables)
        json["variables"][variable.name] = {{"value", variable.is_hidden ? nlohmann::json(nullptr) : nlohmann::json(variable.value)},
                                            {"hidden", variable.is_hidden},
                                            {"from", variable.from}};
    return json;
}

ExplainedLimits explain_limits(const LimitsPolicy &limits)
{
    return {limits, idle_limits(limits, host_controllers()), problem_of_share(limits, host_memory())};
}

std::string to_text(const ExplainedLimits &explained)
{
    const auto &limits = explained.limits;
    std::string text;
    for (const auto &row : limit_rows) {
        if (row.said == &LimitsPolicy::memory_share || row.said == &LimitsPolicy::disk) continue; // told with memory; told below
        const auto standard = default_text(row);
        const auto otherwise = standard.empty()         ? std::string("not limited")
                               : standard.back() == '%' ? fmt::format("{} of the host's (default)", standard)
                                                        : fmt::format("{} (default)", standard);
        text += row.of_user    ? fmt::format(";\n          {} at once: ", name_of(row))
                : text.empty() ? fmt::format("limits:   a session: {} ", name_of(row))
                               : fmt::format(", {} ", name_of(row));
        const auto said = said_for_key(limits, row);
        text += said ? fmt::format("{} ({})", said->text, to_string(said->where)) : otherwise;
    }
    text += "\n";
    if (const auto &said = limits.disk) {
        text += fmt::format("          disk of a user's agent: {} ({})\n", said->text, to_string(said->where));
        const char *start = limits.without_quota == WithoutQuota::refuse ? "no start is possible: " : "";
        if (!explained.disk.empty()) text += fmt::format("          {}limits.disk is not enforced: {}\n", start, explained.disk);
    }
    for (const auto &idle : explained.idle)
        text +=
            fmt::format("          {}{} is not enforced: {}\n", idle.said ? "no start is possible: " : "", to_string(idle), idle.reason);
    if (!explained.problem.empty()) text += fmt::format("          no start is possible: {}\n", explained.problem);
    return text;
}

nlohmann::json to_json(const ExplainedLimits &explained)
{
    const auto &limits = explained.limits;
    nlohmann::json json = {{"not_enforced", nlohmann::json::array()}};
    for (const auto &row : limit_rows) {
        const auto said = said_for_key(limits, row);
        json[name_of(row)] = {{"value", text_or_null(said ? said->text : std::string(default_text(row)))},
                              {"where", said ? nlohmann::json(to_string(said->where)) : nlohmann::json(nullptr)}};
    }
    for (const auto &idle : explained.idle)
        json["not_enforced"].push_back({{"limit", idle.key}, {"said", idle.said.has_value()}, {"reason", idle.reason}});
    if (!explained.disk.empty()) json["not_enforced"].push_back({{"limit", "limits.disk"}, {"said", true}, {"reason", explained.disk}});
    if (!explained.problem.empty()) json["reason"] = explained.problem;
    return json;
}

void check_limits(const LimitsPolicy &limits, const std::string &whose, Problems &problems)
{
    const ExplainedLimits explained = explain_limits(limits);
    if (!explained.problem.empty()) problems.add(limits.memory_share->where, whose + "limits.memory", explained.problem, "");
    for (const auto &idle : explained.idle)
        if (idle.said)
            problems.add(idle.said->where, whose + idle.key, idle.said->text + " cannot be enforced on this host: " + idle.reason,
                         "or remove the key");
}

std::string idle_defaults(const Policy &policy)
{
    std::string text;
    for (const auto &idle : explain_limits(policy.limits).idle)
        if (!idle.said) text += fmt::format("{} is not enforced: {}\n", to_string(idle), idle.reason);
    return text;
}

ExplainedToolchains explain_toolchains(const ToolchainsPolicy &policy, const Observer &observer, const Account &user,
                                       const AccessRules &rules)
{
    std::optional<OpenedHome> home;
    std::string unknown = "only root or " + user.name + " can verify this";
    try {
        if (observer.can_look_for(user)) home = observer.find_home_directories(policy, user, rules);
    } catch (const Failure &failure) { // a file system that does not answer is a finding too
        unknown = failure.what();
    }
    const auto explained = [&](const HomeDirectories &list, bool are_caches) {
        return mapped(list.paths, [&](const PolicyPath &one) {
            return ExplainedHomeDirectory{one.path, place_in_agent_home(one.path),
                                          home ? finding_of(*home, one.path) : Finding{Finding::Kind::unknown, unknown},
                                          is_at_own_path(one.path, are_caches), one.where.line == 0};
        });
    };
    return {explained(policy.readable, false), explained(policy.caches, true)};
}

std::string to_text(const ExplainedToolchains &toolchains)
{
    return text_of(toolchains.readable, "readable:", "read-only, of the user's home") +
           text_of(toolchains.caches, "caches:  ", "of the user's home, and what a session changes in them goes with it");
}

nlohmann::json to_json(const ExplainedToolchains &toolchains)
{
    return {{"readable", json_of(toolchains.readable)}, {"caches", json_of(toolchains.caches)}};
}

} // namespace pi_agent
