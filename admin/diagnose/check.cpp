// Everything that is wrong with a policy, in one report: patterns, method, roots, and the rest.
#include "admin/diagnose/faults.hpp"

#include "admin/text/terminal.hpp"
#include "runner/root/method/engine_host.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/session/state_directory.hpp"

#include <fmt/format.h>
#include <sys/vfs.h>

#include <filesystem>

namespace pi_agent {

namespace {

void look_at_patterns(const Rules &rules, std::vector<Diagnostic> &found)
{
    for (const auto &mask : rules.mask.value_or(std::vector<PolicyPath>()))
        if (mask.path.find("**/") != std::string::npos)
            found.push_back({mask.where, rules.places.at("projects.mask").key,
                             quote(mask.path) + " does not match at any depth, because '*' stands for no '/', however often it is written",
                             "write a pattern without '/' for a name anywhere in the project, or name each path"});
    const auto &protection = rules.protect ? *rules.protect : Protection();
    for (const auto &path : protection.value_or(std::vector<PolicyPath>()))
        if (path.path.find_first_of("*?") != std::string::npos)
            found.push_back({path.where, rules.places.at("projects.protect").key,
                             quote(path.path) + " is the one path that is written so, because what is protected has no wildcards",
                             "name the paths themselves, or a directory that holds them"});
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

// --- Everything that is wrong with a policy, in one report.

bool is_installed_policy(const std::string &path)
{
    return path == policy_path || is_same_file(path, policy_path); // by its name if it does not exist, or this process may not look at it
}

std::vector<Diagnostic> warnings_of_text(const Policy &policy)
{
    auto warnings = find_exposed_secrets(policy);
    add(warnings, find_odd_host_rules(policy));
    add(warnings, find_odd_patterns(policy));
    if (policy.sandbox.method == SandboxMethod::none)
        warnings.push_back({policy.sandbox.where, "sandbox.method",
                            "is 'none', so sessions are not sandboxed: an agent reaches this host's processes, devices and services as its "
                            "account does",
                            "choose systemd, bwrap or podman, unless the host itself is what confines agents (docs/platforms/methods.md)"});
    add(warnings, find_idle_placement(policy));
    return warnings;
}

// What only root can see of an apply that was cut short.
void warn_of_unfinished(const Observer &observer, CheckReport &report)
{
    try {
        if (!observer.root() || !read_unfinished(*observer.root())) return;
    } catch (const Failure &failure) { // a damaged note: that keeps nothing else from being told
        report.warnings.push_back({{}, "", failure.what(), ""});
        return;
    }
    report.warnings.push_back({{}, "", unfinished_change, "'sudo pi-agentctl apply' finishes it, or goes back"});
}

PolicyReading read_for_check(const std::optional<std::string> &draft)
{
    if (!draft || is_installed_policy(*draft)) return read_policy_as_far_as_possible(policy_path);
    const std::string holder = parent_of(std::filesystem::absolute(*draft).lexically_normal());
    const bool is_users = holder == directory_of_users(policy_path);
    if (is_users || holder == directory_of_parts(policy_path))
        throw Failure(ExitStatus::usage, escape_for_display(*draft) +
                                             " is a part of the installed policy, which 'pi-agentctl check' checks as a whole; 'sudo "
                                             "pi-agentctl edit " +
                                             (is_users ? "users.d/" : "") + "NAME.yaml' tries a draft of one file");
    return read_policy_as_far_as_possible({{escape_for_display(*draft), read_draft(*draft)}});
}

} // namespace

std::vector<Diagnostic> find_odd_patterns(const Policy &policy)
{
    std::vector<Diagnostic> found;
    for (const auto &[path, file_class] : policy.config_classes.rules())
        if (path.find_first_of("*?") != std::string::npos)
            found.push_back({{},
                             "config.classes." + escape_for_display(path),
                             "is the one path that is written so, because classes have no wildcards",
                             "name the directory around it, or each path"});
    each_level(policy, [&](const Rules &rules, const std::string & /*whose*/) { look_at_patterns(rules, found); });
    return found;
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
        if (!above.empty()) {
            const auto overlap = overlap_of(root, *above.back());
            found.add(overlap.where, overlap.key, overlap.problem, overlap.remedy);
        }
        above.push_back(&root);
    }
    return found.all();
}

std::vector<Diagnostic> find_warnings(const Policy &policy)
{
    auto warnings = warnings_of_text(policy);
    if (!policy.wrapper.hide_direct_binary && !is_within(policy.agent.binary, "/nix") && can_be_run_by_all(policy.agent.binary))
        warnings.push_back({policy.wrapper.where, "wrapper.hide_direct_binary",
                            "is false, so everybody on this host can run " + policy.agent.binary + " without a sandbox",
                            "remove the key, and run: sudo pi-agentctl apply"});
    for (auto &idle : find_idle_disk_limits(policy))
        if (idle.choice != WithoutQuota::refuse) warnings.push_back(std::move(idle.told)); // an error otherwise
    for (const auto &found : {find_missing_cluster(policy), find_refused_starts(policy), find_possible_refusals(policy)})
        add(warnings, found);
    for (const auto &missing : missing_search_tools())
        warnings.push_back({{}, "", name_package(missing), ""});
    return warnings;
}

void warn(const std::vector<Diagnostic> &found, std::ostream &warnings)
{
    warnings << show_problems(found, "pi-agentctl: warning: ", read_again);
}

std::vector<Diagnostic> find_mistakes(const PolicyReading &reading, const Observer &observer, Means means)
{
    HostCheck check{reading.policy, observer, means};
    check.problems.add_all(reading.problems);
    if (reading.complete) check_host(check);
    return check.problems.all();
}

CheckReport check_policy(const std::optional<std::string> &draft, CheckScope scope)
{
    const auto reading = read_for_check(draft);
    CheckReport report;
    report.entries = reading.policy.users.size();
    report.enabled = reading.policy.wrapper.enable;
    report.missing = reading.missing;
    const auto observer = Observer::self();
    HostCheck check{reading.policy, observer};
    check.problems.add_all(reading.problems);
    if (scope == CheckScope::policy_only) {
        report.warnings = warnings_of_text(reading.policy);
        report.unverified = {"this host: --policy-only says not to look at it"};
        check_host_rules(reading.policy, check.problems);
    } else if (!reading.complete) { // that file may hold what is missing
        report.warnings = warnings_of_text(reading.policy);
        report.unverified = {"what the rest means together, and this host: a file of the policy cannot be read yet"};
    } else {
        report.warnings = find_warnings(reading.policy);
        if (!draft || is_installed_policy(*draft)) check_installed_files(check.problems);
        warn_of_unfinished(observer, report);
        check_host(check);
        report.unverified = std::move(check.unverified);
        add(report.warnings, check.warnings);
        report.idle = idle_defaults(reading.policy);
    }
    report.errors = check.problems.all();
    return report;
}

std::string to_text(const CheckReport &report)
{
    auto text = fmt::format("policy is valid: {} {} authorised{}\n", report.entries, report.entries == 1 ? "entry" : "entries",
                            report.enabled ? "" : ", but the wrapper is disabled: nobody can start pi");
    for (const auto &unverified : report.unverified)
        text += "not verified: " + unverified + '\n';
    return text + report.idle;
}

nlohmann::json to_json(const CheckReport &report)
{
    const auto list = [](const std::vector<Diagnostic> &diagnostics) {
        auto entries = nlohmann::json::array();
        for (const auto &diagnostic : diagnostics)
            entries.push_back(to_json(diagnostic));
        return entries;
    };
    return {{"valid", report.errors.empty()},
            {"errors", list(report.errors)},
            {"warnings", list(report.warnings)},
            {"unverified", report.unverified}};
}

void run_check(const std::optional<std::string> &draft, CheckScope scope, bool json, std::ostream &out, std::ostream &warnings)
{
    const auto report = check_policy(draft, scope);
    const auto kind = report.missing ? FailureKind::no_policy : FailureKind::invalid_policy;
    if (json) {
        print_json(to_json(report), out);
        if (!report.errors.empty()) throw Failure(kind, "the policy has errors, or this host does not fit it");
        return;
    }
    warn(report.warnings, warnings);
    if (report.errors.empty()) {
        out << to_text(report);
        return;
    }
    for (const auto &unverified : report.unverified)
        warnings << "pi-agentctl: not verified: " << unverified << '\n';
    throw PolicyError(report.errors, kind);
}

} // namespace pi_agent
