// Asking for each user of the policy what applies to them.
#include "admin/diagnose/doctor.hpp"

#include "admin/diagnose/canary_run.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/decide/decision.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

OverviewLine line_of(const Policy &policy, const std::string &policy_file, const std::string &name)
{
    OverviewLine line{name, "", {}, "", false, {}, ""};
    const auto user = find_account(name);
    if (!user) {
        line.problem = "there is no such user on this host";
        return line;
    }
    try {
        const auto access = find_access_rules(policy, *user, policy_file);
        if (const auto *refused = std::get_if<NotAuthorised>(&access)) {
            line.problem = refused->text;
            return line;
        }
        const auto &rules = std::get<AccessRules>(access);
        line.entry = rules.entry;
        line.where = rules.where;
        line.agent = rules.agent_account;
        line.agent_exists = find_account(rules.agent_account).has_value();
        for (const auto &root : rules.roots)
            line.roots.push_back(root.spec.text);
        if (!line.agent_exists) line.problem = "there is no account " + line.agent + "; run 'sudo pi-agentctl apply'";
    } catch (const PolicyError &error) { // their groups contradict each other
        line.problem = error.what();
    }
    return line;
}

} // namespace

std::vector<OverviewLine> list_authorised(const Policy &policy, const std::string &policy_file)
{
    std::vector<OverviewLine> lines;
    for (const auto &name : users_of(policy))
        lines.push_back(line_of(policy, policy_file, name));
    return lines;
}

std::string to_text(const std::vector<OverviewLine> &lines)
{
    std::vector<Row> rows;
    std::string problems;
    for (const auto &line : lines) {
        std::string roots;
        for (const auto &root : line.roots)
            roots += (roots.empty() ? "" : " ") + escape_for_display(root);
        rows.push_back({line.user, line.entry, line.entry.empty() ? "" : to_string(line.where), line.agent, roots});
        if (!line.problem.empty()) problems += line.user + " cannot start pi: " + line.problem + "\n";
    }
    return to_table({"USER", "ENTRY", "IN", "AGENT", "ROOTS"}, rows) + problems;
}

nlohmann::json to_json(const std::vector<OverviewLine> &lines)
{
    auto list = nlohmann::json::array();
    for (const auto &line : lines)
        list.push_back({{"user", line.user},
                        {"entry", text_or_null(line.entry)},
                        {"where", line.entry.empty() ? nlohmann::json() : nlohmann::json(to_string(line.where))},
                        {"agent", text_or_null(line.agent)},
                        {"agent_exists", line.agent_exists},
                        {"roots", line.roots},
                        {"problem", text_or_null(line.problem)}});
    return {{"users", list}};
}

} // namespace pi_agent
