// Everything that is wrong with a policy, in one report: patterns, method, roots, and the rest; and whether its sandbox holds.
#include "admin/diagnose/faults.hpp"

#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/host/beneath.hpp"
#include "runner/inside/agent_process.hpp"
#include "runner/inside/canary.hpp"
#include "runner/root/method/engine_host.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/state_directory.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

namespace pi_agent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CanaryAnswer, what, expected, seen, right)

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

// --- Tries the sandbox, as a user and in the way that users start it.

constexpr int canary_patience_seconds = 120;
constexpr int hang_patience_seconds = 20; // where a fault that was found makes pi hang
constexpr int most_tries = 3;             // users whose start fails for a reason of their own

struct StartPlace {
    Account user;
    std::string directory;
    Writing writing = Writing::none; // of the user, there
};

std::optional<StartPlace> find_place(const Policy &policy, const Observer &observer, const std::string &name, const CanTry &can_try = {})
{
    const auto user = find_account(name);
    if (!user) return std::nullopt;
    const auto rules = rules_of_user(policy, *user);
    if (!rules || (can_try && !can_try(*user, *rules))) return std::nullopt;
    std::optional<StartPlace> best; // the first that lets the session be tried most
    for (const auto &finding : observer.resolve_roots(*rules, *user))
        if (finding.kind == Finding::Kind::usable && (!best || finding.writing > best->writing))
            best = StartPlace{*user, finding.text, finding.writing};
    return best;
}

std::optional<StartPlace> choose_place(const Policy &policy, const Observer &observer, const std::optional<std::string> &name)
{
    if (name) {
        auto place = find_place(policy, observer, *name);
        if (!place)
            throw Failure(ExitStatus::usage, "the policy gives " + quote(*name) +
                                                 " no usable root; find out why with: sudo pi-agentctl explain --user " +
                                                 name_as_word(*name));
        return place;
    }
    for (const auto &user : users_of(policy))
        if (auto place = find_place(policy, observer, user)) return place;
    return std::nullopt;
}

// The canary's own line is JSON; every other is pi's.
void read_output(const std::string &output, CanaryReport &report)
{
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        const auto answer = line.empty() || line[0] != '{' ? nlohmann::json() : nlohmann::json::parse(line, nullptr, false);
        if (!answer.is_object() || !answer.contains("findings")) {
            report.said.push_back(escape_for_display(line));
            continue;
        }
        try {
            report.project = answer.value("project", "");
            for (const auto &finding : answer["findings"])
                report.answers.push_back(finding.get<CanaryAnswer>());
        } catch (const nlohmann::json::exception &) { // the line came through a process of the user's
            report.answers.clear();
            report.said.push_back(escape_for_display(line));
        }
    }
}

// What a session may not do in a directory that its user may not write to says nothing about the sandbox, and is left out. Only the
// permissions of the directory refuse with EACCES there: a mount that is wrongly read-only says EROFS.
void leave_out_unwritable(CanaryReport &report)
{
    const std::string writing = "write " + report.project;
    const auto is_of_directory = [&](const CanaryAnswer &answer) {
        return !answer.right && (answer.what == writing || answer.what == setuid_in_project) && answer.seen.ends_with(kept_by_permissions);
    };
    if (std::erase_if(report.answers, is_of_directory) == 0) return;
    report.unasked = "write " + report.directory + ", and what is made there";
    if (report.status == 1 && report.wrong().empty()) report.status = 0; // the canary ended so for these alone
}

CanaryReport run_at(const Policy &policy, const Observer &observer, const std::optional<StartPlace> &place, int patience_seconds)
{
    CanaryReport report;
    report.method = policy.sandbox.method;
    if (!place) return report;
    report.user = place->user.name;
    report.directory = place->directory;
    const auto begun = std::chrono::steady_clock::now();
    const auto pass = let_canary_start(observer.root().value(), place->user.uid); // also on a host that is drained
    // Not by a forked child that becomes the user: it would have no_new_privs, and sudo could do nothing. So the user can trace this
    // process (ptrace(2)), and what it holds and says counts as the user's word.
    try {
        const auto result = run_as_user(observer.root().value(), place->user,
                                        {"env", "--chdir=" + place->directory, build::wrapper_path, "--pi-agent-canary"}, patience_seconds,
                                        NewPrivileges::allowed);
        report.status = result.status;
        read_output(result.output, report);
    } catch (const Failure &failure) { // the user kept it from ending
        report.status = static_cast<int>(failure.status());
        report.said.emplace_back(failure.what());
    }
    if (place->writing == Writing::none) leave_out_unwritable(report);
    RecordSubject subject;
    subject.method = to_string(policy.sandbox.method);
    subject.user = place->user.name;
    subject.uid = place->user.uid;
    subject.directory = place->directory;
    const auto taken = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
    record_event(subject, PreflightEvent{report.is_good() ? "" : to_text(report), static_cast<std::uint64_t>(taken.count())},
                 "pi-agentctl");
    return report;
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

CanaryReport run_canary(const Policy &policy, const Observer &observer, const std::optional<std::string> &name, bool may_hang)
{
    return run_at(policy, observer, choose_place(policy, observer, name), may_hang ? hang_patience_seconds : canary_patience_seconds);
}

CanaryReport try_sandbox(const Policy &policy, const Observer &observer, const CanTry &can_try)
{
    std::optional<CanaryReport> first;
    int tries = 0;
    for (const auto &name : users_of(policy)) {
        const auto place = find_place(policy, observer, name, can_try);
        if (!place) continue;
        auto report = run_at(policy, observer, place, canary_patience_seconds);
        if (!report.answers.empty() && (report.unasked.empty() || !report.is_good())) return report;
        if (!first || (first->answers.empty() && !report.answers.empty())) first = std::move(report);
        if (++tries == most_tries) break;
    }
    return first ? std::move(*first) : run_at(policy, observer, std::nullopt, canary_patience_seconds);
}

std::vector<CanaryAnswer> CanaryReport::wrong() const
{
    std::vector<CanaryAnswer> found;
    std::ranges::copy_if(answers, std::back_inserter(found), [](const CanaryAnswer &answer) { return !answer.right; });
    return found;
}

const CanaryAnswer *CanaryReport::closed_proxy() const
{
    const auto found = std::ranges::find_if(
        answers, [](const CanaryAnswer &answer) { return answer.expected == canary_tunnel && answer.seen != answer.expected; });
    return found == answers.end() ? nullptr : &*found;
}

bool CanaryReport::is_good() const
{
    return !answers.empty() && wrong().empty() && status == 0;
}

std::string to_text(const CanaryReport &report)
{
    const char *method = to_string(report.method);
    if (report.user.empty())
        return fmt::format("the sandbox ({}) was not tried: no user of the policy has a root that exists; once one of them has created "
                           "theirs (explain --user NAME lists them), run: sudo pi-agentctl doctor",
                           method);
    auto text = fmt::format("the sandbox ({}) was tried as {} in {}: ", method, report.user, escape_for_display(report.directory));
    if (report.is_good()) {
        text += fmt::format("all {} probes passed", report.answers.size());
        // Not a wrong answer, but less than other hosts have, or than was to be tried.
        if (!report.unasked.empty())
            text += fmt::format("\n  left out: {}; {} may not write there, or to any other of their roots",
                                escape_for_display(report.unasked), report.user);
        for (const auto &answer : report.answers)
            if (answer.right && answer.expected == landlock_is_there && answer.seen != answer.expected)
                text += fmt::format("\n  {}: {}; what sessions lack then: docs/platforms/kernels.md", escape_for_display(answer.what),
                                    escape_for_display(answer.seen));
        if (const auto *answer = report.closed_proxy())
            text += fmt::format("\n  {}: {}; sessions cannot work before it answers", escape_for_display(answer->what),
                                escape_for_display(answer->seen));
        return text;
    }
    const auto wrong = report.wrong();
    text += report.answers.empty() ? fmt::format("no session came about (status {})", report.status)
                                   : fmt::format("{} of {} probes failed", wrong.size(), report.answers.size());
    for (const auto &answer : wrong)
        text += fmt::format("\n  {}: expected {}, found {}", escape_for_display(answer.what), escape_for_display(answer.expected),
                            escape_for_display(answer.seen));
    for (const auto &line : report.said)
        text += "\n  " + line;
    return text;
}

nlohmann::json to_json(const CanaryReport &report)
{
    return {{"method", to_string(report.method)}, {"user", report.user},     {"directory", report.directory},
            {"answers", report.answers},          {"wrong", report.wrong()}, {"messages", report.said},
            {"left_out", report.unasked},         {"status", report.status}, {"good", report.is_good()}};
}

std::vector<std::string> users_of(const Policy &policy)
{
    std::vector<std::string> names;
    std::set<std::string> known; // a policy may have a hundred thousand users
    const auto add = [&](const std::string &name) {
        if (known.insert(name).second) names.push_back(name);
    };
    for (const auto &entry : policy.users) {
        if (!entry.is_group) {
            add(entry.name);
            continue;
        }
        for (const auto &member : group_members(entry.name))
            add(member);
    }
    return names;
}

} // namespace pi_agent
