// Everything that is wrong with a policy, in one report: patterns, method, roots, and the rest; and whether its sandbox holds.
#include "admin/diagnose/faults.hpp"

#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "common/host/beneath.hpp"
#include "runner/inside/agent_process.hpp"
#include "runner/inside/canary.hpp"
#include "runner/root/session/session_directory.hpp"

#include <fmt/ranges.h>

#include <filesystem>
#include <sstream>

namespace pi_agent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CanaryAnswer, what, expected, seen, right)

namespace {

bool is_installed_policy(const std::string &path)
{
    return path == policy_path || is_same_file(path, policy_path); // by its name if it does not exist, or this process may not look at it
}

// A key that the gate holds is in no session, whatever `env` says: a value there, a real key or not, does nothing.
void tell_of_held_keys(const Policy &policy, std::vector<Diagnostic> &secrets)
{
    const auto look = [&](const Rules &rules, const std::string &whose) {
        const auto &network = rules.network ? rules.network : policy.rules.network;
        const auto &providers = rules.providers ? rules.providers : policy.rules.providers;
        if (!network || network->mode != NetworkMode::hosts || !providers) return;
        for (const auto &rule : *providers)
            for (auto &secret : secrets) {
                const auto *known = find_provider(rule.name);
                const auto is_it = [&](std::string_view variable) { return secret.key == whose + "env." + std::string(variable); };
                if (known == nullptr || std::ranges::none_of(known->variables, is_it)) continue;
                secret.problem += "; and no session gets it, because the gate holds the key of providers." + rule.name + " (" +
                                  to_string(rule.where) + ")";
                secret.remedy = "remove it";
            }
    };
    look(policy.rules, "");
    for (const auto &entry : policy.users)
        look(rules_of(entry.rules), entry_key(entry) + ".");
}

std::vector<Diagnostic> warnings_of_text(const Policy &policy)
{
    auto warnings = find_exposed_secrets(policy);
    tell_of_held_keys(policy, warnings);
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
        return report.warnings.push_back({{}, "", failure.what(), ""});
    }
    report.warnings.push_back({{}, "", unfinished_change, "'sudo pi-agentctl apply' finishes it, or goes back"});
}

// A directory like /etc/pi-agent that is not installed, and need not be trusted.
PolicyReading read_tree(const std::string &tree)
{
    const auto main_file = without_trailing_slashes(tree) + "/policy.yaml";
    PolicyFiles files = {{escape_for_display(main_file), read_draft(main_file)}};
    std::vector<Diagnostic> unread;
    for (const auto &directory : {directory_of_parts(main_file), directory_of_users(main_file)}) {
        std::set<std::string> names; // in order
        std::error_code absent;
        for (const auto &entry : std::filesystem::directory_iterator(directory, absent))
            names.insert(entry.path().filename().string());
        if (absent && absent != std::errc::no_such_file_or_directory) throw SystemFailure(absent.value(), "listing " + directory);
        for (const auto &name : names) {
            const auto shown = escape_for_display(directory + "/" + name);
            if (name.ends_with(".yaml") && name.front() != '.')
                files.push_back({shown, read_draft(directory + "/" + name)});
            else
                unread.push_back({{shown}, "", "is not read as a part of the policy", "end its name with '.yaml', or move it away"});
        }
    }
    auto reading = read_policy_as_far_as_possible(files);
    add(reading.problems, unread);
    return reading;
}

// With a mistake in any file of sudo's, apply installs no rule.
void warn_of_sudo(const Observer &observer, CheckReport &report)
{
    const auto kind = installed_sudo_kind();
    if (build::is_system_managed || !observer.root() || !has_program(visudo_of(kind))) return;
    if (const auto problem = check_sudoers(kind).problem; !problem.empty())
        report.warnings.push_back({{}, "", problem, "correct it with " + visudo_of(kind)});
}

PolicyReading read_for_check(const std::optional<std::string> &draft, CheckScope scope)
{
    if (scope == CheckScope::tree) return read_tree(*draft);
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
constexpr int most_looks = 50;            // users for whose roots a process looks: a group may have thousands, of whom few have any

struct StartPlace {
    Account user;
    std::string directory;
    Writing writing = Writing::none; // of the user, there
};

std::optional<StartPlace> find_place(const Policy &policy, const Observer &observer, const std::string &name, int &looks,
                                     const CanTry &can_try = {})
{
    const auto user = find_account(name);
    if (!user) return std::nullopt;
    const auto rules = rules_of_user(policy, *user);
    if (!rules || (can_try && !can_try(*user, *rules))) return std::nullopt;
    ++looks;
    std::optional<StartPlace> best; // the first that lets the session be tried most
    for (const auto &finding : observer.resolve_roots(*rules, *user))
        if (finding.kind == Finding::Kind::usable && (!best || finding.writing > best->writing))
            best = StartPlace{*user, finding.text, finding.writing};
    return best;
}

std::optional<StartPlace> choose_place(const Policy &policy, const Observer &observer, const std::optional<std::string> &name)
{
    int looks = 0;
    if (name) {
        auto place = find_place(policy, observer, *name, looks);
        if (!place)
            throw Failure(ExitStatus::usage, "the policy gives " + quote(*name) +
                                                 " no usable root; find out why with: sudo pi-agentctl explain --user " +
                                                 name_as_word(*name));
        return place;
    }
    for (const auto &user : users_of(policy)) {
        if (auto place = find_place(policy, observer, user, looks)) return place;
        if (looks == most_looks) break;
    }
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

// Of groups: a name may be there before its account, or longer.
static std::vector<Diagnostic> find_unknown_members(const Policy &policy)
{
    constexpr std::size_t named = 3;
    std::vector<Diagnostic> found;
    for (const auto &entry : policy.users) {
        std::vector<std::string> unknown;
        for (const auto &member : entry.is_group ? group_members(entry.name) : std::vector<std::string>())
            if (!find_account(member)) unknown.push_back(escape_for_display(member));
        if (unknown.empty()) continue;
        const std::string more = unknown.size() > named ? fmt::format(" and {} more", unknown.size() - named) : "";
        const auto count = unknown.size();
        unknown.resize(std::min(count, named));
        found.push_back({entry.where, entry_key(entry),
                         fmt::format("this host does not know {} of the group's members: {}{}; no agent's account is made for them", count,
                                     fmt::join(unknown, ", "), more),
                         ""});
    }
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
    add(warnings, find_unknown_members(policy));
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
    const auto reading = read_for_check(draft, scope);
    CheckReport report;
    report.entries = reading.policy.users.size();
    report.enabled = reading.policy.wrapper.enable;
    report.missing = reading.missing;
    const auto observer = Observer::self();
    HostCheck check{reading.policy, observer};
    check.problems.add_all(reading.problems);
    if (scope != CheckScope::host) {
        report.warnings = warnings_of_text(reading.policy);
        report.unverified = {scope == CheckScope::tree ? "this host: --directory looks at the policy alone"
                                                       : "this host: --policy-only says not to look at it"};
        check_host_rules(reading.policy, check.problems);
    } else if (!reading.complete) { // that file may hold what is missing
        report.warnings = warnings_of_text(reading.policy);
        report.unverified = {"what the rest means together, and this host: a file of the policy cannot be read yet"};
    } else {
        report.warnings = find_warnings(reading.policy);
        if (!draft || is_installed_policy(*draft)) check_installed_files(check.problems);
        warn_of_unfinished(observer, report);
        if (observer.root()) add(report.warnings, find_misplaced(*observer.root(), reading.policy));
        warn_of_sudo(observer, report);
        check_host(check);
        report.unverified = std::move(check.unverified);
        add(report.warnings, check.gone);
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
        return mapped(diagnostics, [&](const auto &diagnostic) { return to_json(diagnostic); });
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
    int looks = 0;
    for (const auto &name : users_of(policy)) {
        if (looks == most_looks) break;
        const auto place = find_place(policy, observer, name, looks, can_try);
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

} // namespace pi_agent
