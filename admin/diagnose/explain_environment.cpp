// Explaining the environment, with the same functions that compose it.
#include "admin/diagnose/explain.hpp"

#include "common/base/text.hpp"
#include "common/policy/policy_env.hpp"
#include "runner/as_user/git_identity.hpp"
#include "runner/as_user/named_files.hpp"
#include "runner/plan/environment.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/errand/user_files.hpp"
#include "runner/root/kernel/host_facts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

HostVariables look_at_host_files(const Policy &policy, const Observer &observer, const Account &user, const AgentPlaces &agents)
{
    if (!observer.can_look_for(user)) return {{}, {"only root or " + user.name + " can read the user's own files"}};
    if (observer.root()) return ask_host_env_files(*observer.root(), user, policy.host_env_files, agents);
    return read_host_env_files(UserPaths(agents), policy.host_env_files, user.home);
}

// The project's own directory is not known here: a file in it counts as one that is copied.
CertificateFiles look_at_certificates(const std::vector<CertificateVariable> &variables, const Observer &observer, const Account &user,
                                      const Policy &policy, const std::string &home, const AgentPlaces &agents)
{
    if (!observer.can_look_for(user)) return {};
    HostView places{policy.view, {}, {}};
    for (const auto &path : policy.view_paths)
        places.trees.insert(path.path);
    const ShownPlaces shown{places, home, home};
    if (observer.root()) return ask_certificate_files(*observer.root(), user, variables, shown, agents);
    return read_certificate_files(UserPaths(agents), variables, shown);
}

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

} // namespace

ExplainedEnvironment explain_environment(const Policy &policy, const AccessRules &rules, const Observer &observer, const Account &user,
                                         const std::string &home)
{
    ExplainedEnvironment environment;
    EnvironmentInput input{{}, {}, policy.env, {}, rules.env, home, rules.agent_account, policy.agent.binary, "ID"};
    AgentPlaces agents;
    note_failure(environment, [&] {
        if (observer.can_look_for(user)) agents = observer.agent_places(policy, rules, user);
        HostVariables variables = look_at_host_files(policy, observer, user, agents);
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
    keep_from_downloading(input, policy.network, missing_search_tools());
    CertificateFiles certificates = look_at_certificates(find_certificate_variables(input), observer, user, policy, home, agents);
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

} // namespace pi_agent
