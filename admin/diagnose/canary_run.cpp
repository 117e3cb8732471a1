// Tries the sandbox, as a user and in the way that users start it.
#include "admin/diagnose/faults.hpp"

#include "admin/programs/program.hpp"
#include "common/host/trusted_file.hpp"
#include "runner/inside/canary.hpp"
#include "runner/inside/agent_process.hpp"
#include "runner/root/session/record.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace pi_agent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CanaryAnswer, what, expected, seen, right)

namespace {

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
    const auto first = std::remove_if(report.answers.begin(), report.answers.end(), is_of_directory);
    if (first == report.answers.end()) return;
    report.answers.erase(first, report.answers.end());
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
    std::copy_if(answers.begin(), answers.end(), std::back_inserter(found), [](const CanaryAnswer &answer) { return !answer.right; });
    return found;
}

bool CanaryReport::is_good() const
{
    return !answers.empty() && wrong().empty() && status == 0;
}

// Not a wrong answer, but less than other hosts have, or than was to be tried.
static std::string missing(const CanaryReport &report)
{
    std::string text;
    if (!report.unasked.empty())
        text += fmt::format("\n  left out: {}; {} may not write there, or to any other of their roots", escape_for_display(report.unasked),
                            report.user);
    for (const auto &answer : report.answers)
        if (answer.right && answer.expected == landlock_is_there && answer.seen != answer.expected)
            text += fmt::format("\n  {}: {}; what sessions lack then: docs/platforms/kernels.md", escape_for_display(answer.what),
                                escape_for_display(answer.seen));
    return text;
}

std::string to_text(const CanaryReport &report)
{
    const char *method = to_string(report.method);
    if (report.user.empty())
        return fmt::format("the sandbox ({}) was not tried: no user of the policy has a root that exists; once one of them has created "
                           "theirs (explain --user NAME lists them), run: sudo pi-agentctl doctor",
                           method);
    auto text = fmt::format("the sandbox ({}) was tried as {} in {}: ", method, report.user, escape_for_display(report.directory));
    if (report.is_good()) return text + fmt::format("all {} probes passed", report.answers.size()) + missing(report);
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
