// An explanation as text for people and as JSON for programs.
#include "admin/diagnose/explain.hpp"

#include "common/base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

std::string name_of_group(Gid group)
{
    return group_name(group).value_or(std::to_string(group.value()));
}

const char *name_of(Finding::Kind kind)
{
    return kind == Finding::Kind::usable ? "usable" : kind == Finding::Kind::unusable ? "unusable" : "not verified";
}

std::string root_line(const ExplainedRoot &root)
{
    const auto &spec = root.granted.spec;
    const auto by_group = root.granted.by_group ? ", by group " + name_of_group(*root.granted.by_group) : "";
    const auto place = fmt::format("{} ({}{})", spec.text, to_string(spec.where), by_group);
    if (root.finding.kind == Finding::Kind::usable) return fmt::format("  {} is {}\n", place, escape_for_display(root.finding.text));
    return fmt::format("  {}: {}: {}\n", place, name_of(root.finding.kind), root.finding.text);
}

std::string access_text(const Explanation &explanation, const AccessRules &rules)
{
    std::string text = fmt::format("user:     {} (uid {})\nentry:    {} ({})\nagent as: {}{}\nconfig:   {}\n{}roots:\n",
                                   explanation.user.name, explanation.user.uid.value(), rules.entry, to_string(rules.where),
                                   rules.agent_account, explanation.account_exists ? "" : " (no such account yet: run 'pi-agentctl apply')",
                                   escape_for_display(rules.config_directory),
                                   rules.ssh_key ? fmt::format("ssh key:  a copy of {}\n", escape_for_display(*rules.ssh_key)) : "");
    for (const auto &root : explanation.roots)
        text += root_line(root);
    return text;
}

std::string directory_text(const ExplainedDirectory &directory)
{
    const auto *verdict = !directory.allowed ? "not verified" : *directory.allowed ? "allowed" : "refused";
    const auto reason = directory.allowed.value_or(false)
                            ? fmt::format("it lies in the root {} ({})", escape_for_display(directory.text), to_string(directory.where))
                            : directory.text;
    return fmt::format("in:       {}\n          {}: {}\n", escape_for_display(directory.path), verdict, reason);
}

// What a session of this method is made in.
std::string sandbox_text(SandboxMethod method)
{
    if (method == SandboxMethod::bwrap) return "in namespaces of its own that bubblewrap makes, and that end with the runner;";
    const char *in_what = method == SandboxMethod::systemd  ? "in the hardened unit"
                          : method == SandboxMethod::podman ? "in a container of podman's in the unit"
                          : method == SandboxMethod::docker ? "in a container of docker's in the unit"
                                                            : "NOT SANDBOXED, in the plain unit";
    return std::string(in_what) + " pi-agent-ID.service, which ends with pi-agent-run-ID.scope (ID: 128 random bits);";
}

std::string start_text(const Explanation &explanation, const AccessRules &rules)
{
    const auto &sandbox = explanation.policy.sandbox;
    return fmt::format("a start:  runs {} as {} with HOME={},\n"
                       "          {}\n"
                       "          writable there: that home, a temporary directory of its own, and the project's root\n"
                       "sandbox:  {}{}; try it: sudo pi-agentctl doctor\n",
                       explanation.policy.agent.binary, rules.agent_account, explanation.home, sandbox_text(sandbox.method),
                       to_string(sandbox.method), sandbox.where.line > 0 ? " (" + to_string(sandbox.where) + ")" : " (default)");
}

struct SystemdText {
    SandboxMethod method;
    std::string operator()(std::monostate /*none*/) const { return ""; }
    std::string operator()(const Failure &failure) const { return fmt::format("systemd:  no start is possible: {}\n", failure.what()); }
    std::string operator()(const SystemdFeatures &features) const
    {
        if (method == SandboxMethod::podman || method == SandboxMethod::docker)
            return fmt::format("systemd:  {}: sessions have process numbers of their own, by {}\n", features.version, to_string(method));
        return fmt::format("systemd:  {}: sessions {} (PrivatePIDs=, from {} on)\n{}", features.version,
                           features.private_pids ? "have process numbers of their own"
                                                 : "share the host's process numbers, and can find out which are in use",
                           systemd_with_private_pids, method == SandboxMethod::systemd ? access_lists(features) : "");
    }

private:
    static std::string access_lists(const SystemdFeatures &features)
    {
        if (features.identity_ids)
            return fmt::format("          access control lists: copies keep entries for accounts and groups with ids below {} "
                               "(PrivateUsers=, from {} on)\n",
                               identity_ids, systemd_with_identity_ids);
        return fmt::format("          access control lists: entries for other accounts and groups cannot be copied (\"Invalid argument\"; "
                           "PrivateUsers=, from {} on)\n",
                           systemd_with_identity_ids);
    }
};

struct SystemdJson {
    nlohmann::json operator()(std::monostate /*none*/) const { return nullptr; }
    nlohmann::json operator()(const Failure &failure) const { return {{"reason", failure.what()}}; }
    nlohmann::json operator()(const SystemdFeatures &features) const
    {
        return {{"version", features.version},
                {"private_pids", features.private_pids},
                {"log_sockets", features.log_sockets},
                {"identity_ids", features.identity_ids}};
    }
};

nlohmann::json root_json(const ExplainedRoot &root)
{
    nlohmann::json json = {
        {"text", root.granted.spec.text}, {"where", to_string(root.granted.spec.where)}, {"state", name_of(root.finding.kind)}};
    json[root.finding.kind == Finding::Kind::usable ? "path" : "reason"] = root.finding.text;
    if (root.granted.by_group) json["group"] = name_of_group(*root.granted.by_group);
    return json;
}

} // namespace

std::string to_text(const Explanation &explanation)
{
    std::string text;
    if (!explanation.policy.wrapper.enable)
        text += to_string(explanation.policy.wrapper.where) + ": wrapper.enable is false: nobody can start pi\n";
    if (const auto *refused = std::get_if<NotAuthorised>(&explanation.access)) return text + "not authorised: " + refused->text + "\n";
    const auto &rules = std::get<AccessRules>(explanation.access);
    text += access_text(explanation, rules);
    if (explanation.directory) text += directory_text(*explanation.directory);
    return text + start_text(explanation, rules) + box_text(explanation) + to_text(explanation.environment) +
           std::visit(SystemdText{explanation.policy.sandbox.method}, explanation.systemd);
}

nlohmann::json to_json(const Explanation &explanation)
{
    nlohmann::json json = {{"user", explanation.user.name},
                           {"uid", explanation.user.uid.value()},
                           {"policy", explanation.policy_file},
                           {"wrapper_enabled", explanation.policy.wrapper.enable}};
    const auto *rules = std::get_if<AccessRules>(&explanation.access);
    json["authorised"] = rules != nullptr;
    if (rules == nullptr) {
        json["reason"] = std::get<NotAuthorised>(explanation.access).text;
        return json;
    }
    json["entry"] = rules->entry;
    json["where"] = to_string(rules->where);
    json["agent"] = {{"account", rules->agent_account},
                     {"account_exists", explanation.account_exists},
                     {"home", explanation.home},
                     {"program", explanation.policy.agent.binary}};
    json["config_directory"] = rules->config_directory;
    json["ssh_key"] = rules->ssh_key ? nlohmann::json(*rules->ssh_key) : nlohmann::json(nullptr);
    json["environment"] = to_json(explanation.environment);
    json["roots"] = nlohmann::json::array();
    for (const auto &root : explanation.roots)
        json["roots"].push_back(root_json(root));
    const auto &sandbox = explanation.policy.sandbox;
    json["sandbox"] = {{"method", to_string(sandbox.method)}, {"where", to_string(sandbox.where)}};
    json["systemd"] = std::visit(SystemdJson{}, explanation.systemd);
    add_box(explanation, json);
    if (has_unit(sandbox.method)) json["unit"] = {{"service", "pi-agent-ID.service"}, {"scope", "pi-agent-run-ID.scope"}};
    if (const auto &directory = explanation.directory) {
        json["directory"] = {{"path", directory->path}, {directory->allowed.value_or(false) ? "root" : "reason", directory->text}};
        json["directory"]["allowed"] = directory->allowed ? nlohmann::json(*directory->allowed) : nlohmann::json(nullptr);
    }
    return json;
}

} // namespace pi_agent
