// Trying the sandbox, as a user and by the way that users take.
#include "admin/doctor.hpp"

#include "admin/accounts.hpp"
#include "admin/program.hpp"
#include "build_config.hpp"
#include "common/decision.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "common/policy_load.hpp"
#include "runner/record.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace pi_agent {

namespace {

constexpr int canary_patience_seconds = 120;

struct Place {
    Account user;
    std::string directory;
};

std::vector<std::string> users_of(const Policy &policy)
{
    std::vector<std::string> names;
    for (const auto &entry : policy.users) {
        if (!entry.is_group) {
            names.push_back(entry.name);
            continue;
        }
        const auto members = group_members(entry.name);
        names.insert(names.end(), members.begin(), members.end());
    }
    return names;
}

std::optional<Place> find_place(const Policy &policy, const Observer &observer, const std::string &name)
{
    const auto user = find_account(name);
    if (!user) return std::nullopt;
    const auto access = find_access_rules(policy, *user, policy_path);
    const auto *rules = std::get_if<AccessRules>(&access);
    if (rules == nullptr) return std::nullopt;
    std::vector<RootSpec> roots;
    for (const auto &root : rules->roots)
        roots.push_back(root.spec);
    for (const auto &finding : observer.resolve_roots(roots, *user))
        if (finding.kind == Finding::Kind::usable) return Place{*user, finding.text};
    return std::nullopt;
}

std::optional<Place> choose_place(const Policy &policy, const Observer &observer, const std::optional<std::string> &name)
{
    if (name) {
        const auto place = find_place(policy, observer, *name);
        if (!place)
            throw Failure(ExitStatus::usage,
                          "the policy gives " + quote(*name) + " no root that can be used; see: pi-agentctl explain --user NAME");
        return place;
    }
    for (const auto &user : users_of(policy))
        if (const auto place = find_place(policy, observer, user)) return place;
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
            for (const auto &finding : answer["findings"]) {
                ++report.answers;
                if (!finding.value("right", false))
                    report.wrong.push_back({finding.value("what", ""), finding.value("expected", ""), finding.value("seen", "")});
            }
        } catch (const nlohmann::json::exception &) { // the line came through a process of the user's
            report.answers = 0;
            report.said.push_back(escape_for_display(line));
        }
    }
}

nlohmann::json to_json(const CanaryReport &report, SandboxMethod method)
{
    nlohmann::json wrong = nlohmann::json::array();
    for (const auto &answer : report.wrong)
        wrong.push_back({{"what", answer.what}, {"expected", answer.expected}, {"seen", answer.seen}});
    return {{"method", to_string(method)}, {"user", report.user},     {"directory", report.directory},
            {"answers", report.answers},   {"wrong", wrong},          {"messages", report.said},
            {"status", report.status},     {"good", report.is_good()}};
}

} // namespace

CanaryReport run_canary(const Policy &policy, const Observer &observer, const std::optional<std::string> &name)
{
    CanaryReport report;
    const auto place = choose_place(policy, observer, name);
    if (!place) return report;
    report.user = place->user.name;
    report.directory = place->directory;
    // Not by a child of ours that becomes the user: it would have no_new_privs, and sudo could do nothing. So the user can trace this
    // process (ptrace(2)), and what it holds is the user's.
    try {
        const auto result = run_program_apart({"setpriv", "--reuid", std::to_string(place->user.uid.value()), "--regid",
                                               std::to_string(place->user.gid.value()), "--init-groups", "--reset-env", "env",
                                               "--chdir=" + place->directory, PI_AGENT_WRAPPER_PATH, "--pi-agent-canary"},
                                              canary_patience_seconds);
        report.status = result.status;
        read_output(result.output, report);
    } catch (const Failure &failure) { // the user kept it from its end
        report.status = static_cast<int>(failure.status());
        report.said.emplace_back(failure.what());
    }
    RecordSubject subject;
    subject.method = to_string(policy.sandbox.method);
    record_event(subject, PreflightEvent{report.is_good() ? "" : to_text(report, policy.sandbox.method)}, "pi-agentctl");
    return report;
}

std::string to_text(const CanaryReport &report, SandboxMethod method)
{
    if (report.user.empty())
        return fmt::format("the sandbox ({}) was not tried: no user of the policy has a root that exists", to_string(method));
    auto text =
        fmt::format("the sandbox ({}) was tried as {} in {}: ", to_string(method), report.user, escape_for_display(report.directory));
    if (report.is_good()) return text + fmt::format("all {} answers are as they are to be", report.answers);
    text += report.answers == 0 ? fmt::format("no session came about (status {})", report.status)
                                : fmt::format("{} of {} answers are wrong", report.wrong.size(), report.answers);
    for (const auto &answer : report.wrong)
        text +=
            fmt::format("\n  {}: expected {}, found {}", escape_for_display(answer.what), answer.expected, escape_for_display(answer.seen));
    for (const auto &line : report.said)
        text += "\n  " + line;
    return text;
}

void run_doctor(const std::optional<std::string> &user_name, bool json, std::ostream &out)
{
    const auto observer = Observer::self();
    if (!observer.root())
        throw Failure(ExitStatus::denied, "doctor starts a session as a user, so only root can run it; try 'sudo pi-agentctl doctor'");
    const auto policy = load_policy(policy_path);
    const auto report = run_canary(policy, observer, user_name);
    if (json)
        out << to_json(report, policy.sandbox.method).dump(2) << '\n';
    else if (report.is_good())
        out << to_text(report, policy.sandbox.method) << '\n';
    if (!report.is_good())
        throw Failure(ExitStatus::unavailable, json ? "not all is as it is to be" : to_text(report, policy.sandbox.method));
}

} // namespace pi_agent
