// The command render, and the filter of system calls as engines read it.
#include "admin/render/render.hpp"

#include "admin/text/terminal.hpp"
#include "common/base/build_settings.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "runner/as_user/project.hpp"
#include "runner/filter/call_rules.hpp"
#include "runner/root/door/admission.hpp"
#include "runner/root/errand/user_files.hpp"

#include <nlohmann/json.hpp>

#include <sstream>

namespace pi_agent {

// --- The command: finds out, plans, asks whether a Job can do all of it, and writes. As in the runner, children that have become the user
// look: root opens nothing that the user names (design rule 1).

namespace {

constexpr int search_seconds = mask_search_seconds + child_patience_seconds;

// Makes the user's policy the one that holds in this directory.
OpenedProject open_as(const AsRoot &root, Policy &policy, const AccessRules &rules, const Account &user, const std::string &directory)
{
    const HostView view = plan_host_view(policy);
    Child child(root, "look for " + user.name, user, {}, [&](const AsUser & /*user*/, FdRef channel) {
        const auto cwd = open_or_throw("opening " + escape_for_display(directory), directory, O_PATH | O_DIRECTORY);
        open_as_caller(user, rules, cwd, channel);
    });
    auto opened = open_project(child, user, rules, view, std::move(policy), {});
    if (const auto *refused = std::get_if<Refused>(&opened)) throw Failure(ExitStatus::denied, refused->text);
    policy = std::get<OpenedProject>(opened).policy;
    return std::get<OpenedProject>(std::move(opened));
}

// What a list of the policy protects and does not exist, each with the position of its entry.
std::vector<PolicyPath> missing_of(const std::vector<PolicyPath> &wanted, const std::string &repository,
                                   const std::vector<std::string> &placeholders)
{
    std::vector<PolicyPath> missing;
    for (const auto &placeholder : placeholders) {
        const auto is_for = [&](const PolicyPath &path) { return is_within(join_path(repository, path.path), placeholder); };
        const auto found = std::find_if(wanted.begin(), wanted.end(), is_for); // none behind a link
        missing.push_back({placeholder, (found == wanted.end() ? wanted.front() : *found).where});
    }
    return missing;
}

// Finds what exists and is protected. For what does not exist, the runner would mount placeholders, which no engine can.
void find_points(const AsRoot &root, const Policy &policy, const Account &user, const OpenedProject &project, RenderFacts &facts)
{
    const int top = project.shown.directory.get();
    ProjectsPolicy searched = policy.projects;
    searched.mask.clear(); // refused for every engine that is not ours
    Child finder(root, "finder of protected paths", user, {top}, [&](const AsUser &self, FdRef channel) {
        serve_guarded_paths(self, {{project.shown.directory, facts.tree}, project.repository, project.below, {}}, searched, channel);
    });
    const GuardedPaths found = decode_guarded_paths(finder.receive_long(search_seconds));
    facts.points = plan_points(found.read_only, found.kept);
    facts.notices = found.notices;
    if (const auto &wanted = policy.projects.protect; wanted && !wanted->empty())
        facts.missing = missing_of(*wanted, project.repository.value_or(""), found.placeholders);
    const auto look = [&](const AsUser & /*self*/) { return Texts{links_among(facts.points, FdRef(top))}; };
    facts.links = ask(root, {"look at protected paths", user, {top}}, look, decode_paths);
}

// Whether each line with content is literally one of the assignments, as engines read it.
bool is_plain(const std::string &path, const std::vector<EnvAssignment> &assignments)
{
    std::set<std::string> plain;
    for (const auto &assignment : assignments)
        plain.insert(assignment.name + "=" + assignment.value);
    std::istringstream text(read_trusted_file(path, env_file_limit, "file of variables"));
    for (std::string line; std::getline(text, line);)
        if (!line.empty() && line[0] != '#' && !plain.contains(line)) return false;
    return true;
}

// Throws Failure(denied) where pi would not start, and whatever else keeps a start from coming about.
RenderFacts find_render_facts(const AsRoot &root, Policy &policy, const AccessRules &rules, const Account &user,
                              const std::string &directory)
{
    RenderFacts facts{{user, find_agent(policy, rules, user), {}, {}, {}, {}, {}, {}, {}}, {}, {}};
    require_harmless_groups(policy, rules, facts.agent);
    const OpenedProject project = open_as(root, policy, rules, user, directory);
    facts.tree = project.shown.path();
    for (const auto &closed : project.closed)
        if (is_within(closed.path, facts.tree))
            throw Failure(ExitStatus::unavailable,
                          "the root " + escape_for_display(closed.path) +
                              " has rules of its own, and only the runner hides it from this session; render for a "
                              "directory that does not hold it");
    facts.below = project.below;
    if (project.shown.by_group) facts.groups.push_back(*project.shown.by_group);
    for (const auto &other : project.git_directories)
        facts.beside.push_back(other.path());
    find_points(root, policy, user, project, facts);
    facts.managed_files = read_managed_env_files(policy.env_files);
    for (const auto &file : policy.env_files)
        if (!is_plain(file.path, facts.managed_files)) facts.quoted_files.insert(file.path);
    const AgentPlaces agents = places_of_state(policy, rules, project.roots);
    for (const auto &assignment : ask_host_env_files(root, user, policy.host_env_files, agents).assignments)
        facts.host_variables.push_back(assignment.where);
    return facts;
}

// --- A system-call filter as data, and as the engines' JSON.

using Conditions = std::vector<PassingCondition>; // one of them holds

// All the ways for a test to fail: one bit that is different.
Conditions failing(const ArgumentTest &test)
{
    if (!test.equal) return {{{test.index, {test.mask, test.value}}}};
    Conditions conditions;
    for (std::uint64_t bit = 1; bit != 0; bit <<= 1U)
        if ((test.mask & bit) != 0) conditions.push_back({{test.index, {bit, ~test.value & bit}}});
    return conditions;
}

// Empty if both cannot hold.
std::optional<PassingCondition> both(PassingCondition one, const PassingCondition &other)
{
    for (const auto &[index, bits] : other) {
        const auto [known, is_new] = one.emplace(index, bits);
        if (is_new) continue;
        ArgumentBits &merged = known->second;
        if (((merged.value ^ bits.value) & merged.mask & bits.mask) != 0) return std::nullopt;
        merged = {merged.mask | bits.mask, merged.value | bits.value};
    }
    return one;
}

// True when `wider` holds wherever `narrower` does.
bool holds_wherever(const PassingCondition &wider, const PassingCondition &narrower)
{
    return std::all_of(wider.begin(), wider.end(), [&](const auto &wanted) {
        const auto found = narrower.find(wanted.first);
        return found != narrower.end() && (found->second.mask & wanted.second.mask) == wanted.second.mask &&
               (found->second.value & wanted.second.mask) == wanted.second.value;
    });
}

// Without those that follow from another one.
Conditions simplest(const Conditions &conditions)
{
    Conditions kept;
    for (const auto &condition : conditions) {
        if (std::any_of(kept.begin(), kept.end(), [&](const auto &other) { return holds_wherever(other, condition); })) continue;
        kept.erase(std::remove_if(kept.begin(), kept.end(), [&](const auto &other) { return holds_wherever(condition, other); }),
                   kept.end());
        kept.push_back(condition);
    }
    return kept;
}

Conditions all_of(const Conditions &one, const Conditions &other)
{
    Conditions conditions;
    for (const auto &first : one)
        for (const auto &second : other)
            if (auto merged = both(first, second)) conditions.push_back(std::move(*merged));
    return simplest(conditions);
}

using Json = nlohmann::ordered_json;

#if defined(__x86_64__)
constexpr const char *architecture = "SCMP_ARCH_X86_64";
#elif defined(__aarch64__)
constexpr const char *architecture = "SCMP_ARCH_AARCH64";
#else
constexpr const char *architecture = nullptr;
#endif
static_assert(architecture != nullptr, "name this architecture as the OCI runtime specification does");

Json arguments_of(const PassingCondition &condition)
{
    Json arguments = Json::array();
    for (const auto &[index, bits] : condition) {
        if (bits.mask == whole_argument)
            arguments.push_back({{"index", index}, {"value", bits.value}, {"op", "SCMP_CMP_EQ"}});
        else
            arguments.push_back({{"index", index}, {"value", bits.mask}, {"valueTwo", bits.value}, {"op", "SCMP_CMP_MASKED_EQ"}});
    }
    return arguments;
}

} // namespace

std::string default_image()
{
    return std::string("localhost/pi-agent:") + build::version;
}

std::vector<std::string> links_among(const std::map<std::string, PointKind> &points, FdRef top)
{
    std::vector<std::string> links;
    for (const auto &point : points) {
        const UniqueFd found = find_beneath(top, point.first, O_PATH);
        struct stat facts {};
        const bool is_behind_link = !found && (errno == ELOOP || errno == EXDEV);
        if (!found && !is_behind_link) throw_errno("looking at " + escape_for_display(point.first));
        if (found && fstat(found.get(), &facts) != 0) throw_errno("examining " + escape_for_display(point.first));
        if (is_behind_link || S_ISLNK(facts.st_mode)) links.push_back(point.first);
    }
    return links;
}

WorkspaceVolume parse_workspace_volume(const std::string &text)
{
    if (text.empty()) return {};
    const bool is_efs = text.rfind("efs:", 0) == 0;
    const std::string place = is_efs ? text.substr(4) : text;
    const std::size_t colon = place.find(':');
    const std::string server = place.substr(0, colon);
    const std::string path = colon == std::string::npos ? "" : place.substr(colon + 1);
    const bool is_whole = !server.empty() && !path.empty() && (is_efs ? path.rfind("fsap-", 0) == 0 : path[0] == '/');
    if (!is_whole) throw Failure(ExitStatus::usage, "--volume: '" + text + "' is neither SERVER:/EXPORT of NFS nor efs:fs-ID:fsap-ID");
    return {is_efs ? WorkspaceVolume::Kind::efs : WorkspaceVolume::Kind::nfs, server, path};
}

void run_render(const RenderOptions &options, std::ostream &out)
{
    if (options.target == "seccomp") {
        out << render_seccomp();
        return;
    }
    if (options.target != "kubernetes")
        throw Failure(ExitStatus::usage, "--target: unknown target " + quote(options.target) + ": kubernetes or seccomp");
    if (!options.user || !options.directory)
        throw Failure(ExitStatus::usage, "a rendering for kubernetes needs --user and --cwd: it is for one user in one directory");
    const AsRoot root = claim_root("render", "reads files of variables that only root can read, and looks for others");
    const auto user = find_account(*options.user);
    if (!user) throw Failure(ExitStatus::usage, "this host has no user " + quote(*options.user));
    Policy policy = load_enabled_policy(*user);
    const AccessRules rules = authorise(policy, *user);
    policy = policy_for(std::move(policy), rules);
    RenderFacts facts = find_render_facts(root, policy, rules, *user, *options.directory);
    facts.image = options.image;
    const RenderPlan plan = plan_rendering(policy, rules, facts);
    require_honoured(plan);
    out << render_kubernetes(plan, parse_workspace_volume(options.volume), options.arguments);
}

std::map<std::string, std::vector<PassingCondition>> passing_calls()
{
    std::map<std::string, Conditions> calls;
    for (const char *name : allowed_calls)
        calls[name] = {{}};
    for (const auto &allowance : allowances_of(for_agents))
        calls[allowance.name].push_back({{allowance.test.index, {allowance.test.mask, allowance.test.value}}});
    for (const auto &denial : denials_of({DenialPart::always, DenialPart::unknown, DenialPart::set_gid, DenialPart::tuning})) {
        const auto found = calls.find(denial.name);
        if (found == calls.end()) continue;
        Conditions failures;
        for (const auto &test : denial.tests)
            for (auto &condition : failing(test))
                failures.push_back(std::move(condition));
        found->second = all_of(found->second, failures);
        if (found->second.empty()) calls.erase(found);
    }
    return calls;
}

std::string render_seccomp()
{
    Json always = Json::array();
    Json unknown = Json::array();
    Json conditional = Json::array();
    for (const auto &[name, conditions] : passing_calls())
        for (const auto &condition : conditions) {
            if (condition.empty())
                always.push_back(name);
            else
                conditional.push_back({{"names", Json::array({name})}, {"action", "SCMP_ACT_ALLOW"}, {"args", arguments_of(condition)}});
        }
    for (const auto &call : denials_of({DenialPart::unknown}))
        unknown.push_back(call.name);
    Json calls = Json::array();
    calls.push_back({{"names", always}, {"action", "SCMP_ACT_ALLOW"}});
    calls.push_back({{"names", unknown}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", ENOSYS}});
    for (auto &call : conditional)
        calls.push_back(std::move(call));
    const Json profile = {{"defaultAction", "SCMP_ACT_ERRNO"},
                          {"defaultErrnoRet", EPERM},
                          {"architectures", Json::array({architecture})},
                          {"syscalls", calls}};
    return profile.dump(2) + "\n";
}

} // namespace pi_agent
