// An explanation as text for people and as JSON for programs.
#include "admin/diagnose/explain.hpp"
#include "runner/root/method/sandbox.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
    std::string keys; // of which a session has copies, a line each
    if (rules.ssh_key) keys += "ssh key:  a copy of " + escape_for_display(*rules.ssh_key) + "\n";
    if (rules.signing_key) keys += "signing:  a copy of " + escape_for_display(*rules.signing_key) + "\n";
    std::string text = fmt::format("user:     {} (uid {})\nentry:    {} ({})\nagent as: {}{}\nconfig:   {}\n{}roots:\n",
                                   explanation.user.name, explanation.user.uid.value(), rules.entry, to_string(rules.where),
                                   rules.agent_account, explanation.account_exists ? "" : " (no such account yet: run 'pi-agentctl apply')",
                                   escape_for_display(rules.config_directory), keys);
    for (const auto &root : explanation.roots)
        text += root_line(root);
    return text;
}

// What a session with this method is made in.
std::string sandbox_text(SandboxMethod method)
{
    if (method == SandboxMethod::bwrap) return "in namespaces of its own that bubblewrap makes, and that end with the runner;";
    const char *in_what = method == SandboxMethod::systemd  ? "in the hardened unit"
                          : method == SandboxMethod::podman ? "in a container of podman's in the unit"
                          : method == SandboxMethod::docker ? "in a container of docker's in the unit"
                                                            : "NOT SANDBOXED, in the plain unit";
    return std::string(in_what) + " pi-agent-ID.service, which ends with pi-agent-run-ID.scope (ID: 128 random bits);";
}

nlohmann::json root_json(const ExplainedRoot &root)
{
    nlohmann::json json = {
        {"text", root.granted.spec.text}, {"where", to_string(root.granted.spec.where)}, {"state", name_of(root.finding.kind)}};
    json[root.finding.kind == Finding::Kind::usable ? "path" : "reason"] = root.finding.text;
    if (root.granted.by_group) json["group"] = name_of_group(*root.granted.by_group);
    return json;
}

// The part about the sandbox: what it shows of the host and of the project, and what it reaches.

std::string joined_safely(const std::vector<std::string> &texts)
{
    return joined(texts, ", ", [](const auto &one) { return escape_for_display(one); });
}

// What the policy names or, if the host could be asked, what these names lead to.
std::vector<std::string> shown_besides(const Explanation &explanation)
{
    if (const auto *view = std::get_if<HostView>(&explanation.shown)) return {view->trees.begin(), view->trees.end()};
    return texts_of(explanation.policy.view_paths);
}

nlohmann::json view_json(const Explanation &explanation)
{
    nlohmann::json json = {{"mode", explanation.policy.view == View::minimal ? "minimal" : "host"},
                           {"besides", shown_besides(explanation)},
                           {"devices", texts_of(explanation.policy.devices)}};
    if (const auto *failure = std::get_if<Failure>(&explanation.shown)) json["reason"] = failure->what();
    return json;
}

std::string projects_text(const ProjectsPolicy &projects)
{
    std::string text = std::string("projects: ") + (projects.scope == ProjectScope::root ? "all of the root" : "only the repository") +
                       " that holds the directory";
    text += projects.paths == ProjectPaths::host ? ", at its path on this host\n" : ", below ~/projects of the agent's home\n";
    text += projects.ownership == ProjectOwnership::none ? "          the agent's account has its own rights there, and no others\n" : "";
    if (projects.read_only)
        text += "          read-only, all of it\n";
    else if (!projects.protect)
        text += "          read-only in it: what git executes, in the repository that holds the directory;\n"
                "          while a session runs, git commands outside that write .git/config fail: \"Device or resource busy\"\n";
    else if (!projects.protect->empty())
        text += "          read-only in it: " + joined_safely(texts_of(*projects.protect)) + "\n";
    if (!projects.undo.on) text += "          without undo: the policy's projects.undo says so\n";
    if (projects.undo.on && !projects.read_only)
        text +=
            fmt::format("          with undo (pi-agentctl undo): {} in all, files of at most {}, 300,000 entries; of a home, or /, the\n"
                        "          repository alone. Not for what tools make again (node_modules), pushes, databases and other hosts\n",
                        projects.undo.size.text, projects.undo.file.text);
    if (!projects.mask.empty()) text += "          unreadable in it: " + joined_safely(texts_of(projects.mask)) + "\n";
    return text;
}

nlohmann::json projects_json(const ProjectsPolicy &projects)
{
    return {{"paths", projects.paths == ProjectPaths::host ? "host" : "alias"},
            {"scope", projects.scope == ProjectScope::root ? "root" : "project"},
            {"ownership", projects.ownership == ProjectOwnership::idmap ? "idmap" : "none"},
            {"protect", projects.protect ? nlohmann::json(texts_of(*projects.protect)) : nlohmann::json("default")},
            {"mask", texts_of(projects.mask)},
            {"read_only", projects.read_only},
            {"aftermath", projects.aftermath},
            {"undo",
             projects.undo.on ? nlohmann::json{{"size", projects.undo.size.text}, {"file", projects.undo.file.text}} : nlohmann::json()}};
}

// What the systemd of this host gives a session.
std::string systemd_text(const Explanation &explanation)
{
    const auto method = explanation.policy.sandbox.method;
    if (const auto *failure = std::get_if<Failure>(&explanation.systemd))
        return fmt::format("systemd:  no start is possible: {}\n", failure->what());
    const auto *features = std::get_if<SystemdFeatures>(&explanation.systemd);
    if (features == nullptr) return "";
    if (method == SandboxMethod::podman || method == SandboxMethod::docker)
        return fmt::format("systemd:  {}: sessions have process numbers of their own, by {}\n", features->version, to_string(method));
    auto text = fmt::format("systemd:  {}: sessions {} (PrivatePIDs=, from {} on)\n", features->version,
                            features->private_pids ? "have process numbers of their own"
                                                   : "share the host's process numbers, and can find out which are in use",
                            systemd_with_private_pids);
    if (method != SandboxMethod::systemd) return text;
    if (features->identity_ids)
        return text + fmt::format("          access control lists: copies keep entries for accounts and groups with ids below {} "
                                  "(PrivateUsers=, from {} on)\n",
                                  identity_ids, systemd_with_identity_ids);
    return text +
           fmt::format("          access control lists: entries for other accounts and groups cannot be copied (\"Invalid argument\"; "
                       "PrivateUsers=, from {} on)\n",
                       systemd_with_identity_ids);
}

nlohmann::json systemd_json(const Explanation &explanation)
{
    if (const auto *failure = std::get_if<Failure>(&explanation.systemd)) return {{"reason", failure->what()}};
    const auto *features = std::get_if<SystemdFeatures>(&explanation.systemd);
    if (features == nullptr) return nullptr;
    return {{"version", features->version},
            {"private_pids", features->private_pids},
            {"log_sockets", features->log_sockets},
            {"identity_ids", features->identity_ids}};
}

// Their names are from the tables of common/policy/policy_paths.hpp.
std::string said_line(const char *label, const char *key, const std::vector<PolicyPath> &list)
{
    if (list.empty()) return "";
    return fmt::format("{}{} (hardening.{}, {})\n", label, fmt::join(texts_of(list), ", "), key, to_string(list.front().where));
}

constexpr const char *tracing_words[] = {"auto", "always", "never"};

// The default says nothing: who asks about a debugger reads docs/security/guarantees.md, and doctor says what this kernel can do.
std::string tracing_text(const Policy &policy)
{
    if (policy.tracing == Tracing::automatic) return "";
    return fmt::format("tracing:  {} (hardening.tracing: {}): programs of a session {} others of the same session\n",
                       policy.tracing == Tracing::always ? "allowed" : "refused", tracing_words[static_cast<int>(policy.tracing)],
                       policy.tracing == Tracing::always ? "may debug" : "cannot debug");
}

nlohmann::json calls_json(const Policy &policy)
{
    std::vector<std::string> families;
    for (std::size_t index = 0; index < std::size(address_families); ++index)
        if ((address_families_of(policy.calls) & (1U << index)) != 0) families.emplace_back(address_families[index]);
    return {{"tracing", tracing_words[static_cast<int>(policy.tracing)]},
            {"deny_system_calls", denied_calls_of(policy.calls)},
            {"allow_system_calls", allowed_calls_of(policy.calls)},
            {"address_families", families}};
}

std::string box_text(const Explanation &explanation)
{
    const auto &policy = explanation.policy;
    const bool in_memory = policy.scratch == ScratchKind::tmpfs;
    const auto named = [](const char *label, const auto &texts) { return texts.empty() ? "" : label + joined_safely(texts); };
    const auto *failure = std::get_if<Failure>(&explanation.shown);
    // What the policy's hardening refuses and lets through; no text where it says nothing.
    const auto &calls = policy.calls;
    // What git and the agent are told, and what a session does otherwise.
    auto text =
        fmt::format("scratch:  {} (scratch: {}): /tmp and /var/tmp of each session, TMPDIR=/tmp there; removed when it ends\n",
                    in_memory ? fmt::format("in memory, at most {} of it", scratch_memory_share) : "on the disk of the state directory",
                    in_memory ? "tmpfs" : "disk") +
        fmt::format("view:     {}{}{}\n{}",
                    explanation.policy.view == View::minimal ? "minimal: read-only /usr, /opt, of /etc what programs need"
                                                             : "host: read-only /usr, /opt, /etc",
                    named("; besides: ", shown_besides(explanation)), named("; devices: ", texts_of(explanation.policy.devices)),
                    failure != nullptr ? fmt::format("          no start is possible: {}\n", failure->what()) : "") +
        projects_text(policy.projects) + to_text(explanation.toolchains) + network_text(policy) + tracing_text(policy) +
        said_line("calls:    refused besides: ", "deny_system_calls", calls.denied) +
        said_line("calls:    not refused: ", "allow_system_calls", calls.allowed) +
        said_line("sockets:  only ", "address_families", calls.families) + to_text(explanation.limits) +
        fmt::format("git:      {} (git_identity{})\n"
                    "notes:    the agent is {}told about its sandbox{} (box_notes{})\n"
                    "differs:  {};\n"
                    "          reasons and remedies: docs/reference/differences.md, in /usr/share/doc/pi-agent\n",
                    policy.git_identity ? "commits carry the user's own user.name and user.email; more settings pass"
                                        : "none of the user's git settings counts",
                    policy.git_identity ? "" : ": false", policy.box_notes ? "" : "not ", policy.box_notes ? " in /AGENTS.md" : "",
                    policy.box_notes ? "" : ": false", always_different);
    for (const auto &missing : explanation.missing_tools)
        text += fmt::format("tools:    {}\n", name_package(missing));
    return text;
}

} // namespace

std::vector<std::string> texts_of(const std::vector<PolicyPath> &paths)
{
    return mapped(paths, [&](const auto &path) { return path.path; });
}

std::string to_text(const Explanation &explanation)
{
    std::string text;
    if (!explanation.policy.wrapper.enable)
        text += to_string(explanation.policy.wrapper.where) + ": wrapper.enable is false: nobody can start pi\n";
    if (const auto *refused = std::get_if<NotAuthorised>(&explanation.access)) return text + "not authorised: " + refused->text + "\n";
    const auto &rules = std::get<AccessRules>(explanation.access);
    text += access_text(explanation, rules);
    if (explanation.directory) {
        const auto *verdict = !explanation.directory->allowed ? "not verified" : *explanation.directory->allowed ? "allowed" : "refused";
        const auto reason = explanation.directory->allowed.value_or(false)
                                ? fmt::format("it is in the root {} ({})", escape_for_display(explanation.directory->text),
                                              to_string(explanation.directory->where))
                                : explanation.directory->text;
        text += fmt::format("in:       {}\n          {}: {}\n", escape_for_display(explanation.directory->path), verdict, reason);
    }
    const auto &sandbox = explanation.policy.sandbox;
    return text +
           fmt::format("a start:  runs {} as {} with HOME={},\n"
                       "          {}\n"
                       "          writable there: that home, a temporary directory of its own, and the project's root\n"
                       "{}"
                       "sandbox:  {}{}; try it: sudo pi-agentctl doctor\n",
                       explanation.policy.agent.binary, rules.agent_account, explanation.home, sandbox_text(sandbox.method),
                       placement_text(explanation.policy), to_string(sandbox.method),
                       sandbox.where.line > 0 ? " (" + to_string(sandbox.where) + ")" : " (default)") +
           box_text(explanation) + said_text(explanation.policy) + to_text(explanation.environment) + systemd_text(explanation);
}

std::string on_one_screen(const std::string &text)
{
    constexpr std::string_view labels = "user entry roots in projects network keys runs";
    std::string kept;
    bool is_kept = false;
    for (const auto line : split(text, '\n')) {
        if (!line.starts_with(' ')) is_kept = has_word(labels, line.substr(0, line.find(':')));
        if (is_kept || line.find("no start is possible") != std::string_view::npos) kept += std::string(line) + '\n';
    }
    return kept + "more:     the same command with --all: variables, limits, toolchains, and what differs from a shell\n";
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
    for (const auto &[name, key] : {std::pair("ssh_key", &rules->ssh_key), std::pair("signing_key", &rules->signing_key)})
        json[name] = *key ? nlohmann::json(**key) : nlohmann::json(nullptr);
    json["environment"] = to_json(explanation.environment);
    json["roots"] = mapped(explanation.roots, root_json);
    const auto &sandbox = explanation.policy.sandbox;
    json["sandbox"] = {{"method", to_string(sandbox.method)}, {"where", to_string(sandbox.where)}};
    json["placement"] = {{"engine", has_jobs(explanation.policy) ? "slurm" : "none"}};
    if (has_jobs(explanation.policy)) json["placement"]["options"] = job_options(explanation.policy, job_name);
    json["systemd"] = systemd_json(explanation);
    json["view"] = view_json(explanation);
    json["missing_tools"] = explanation.missing_tools;
    json["git_identity"] = explanation.policy.git_identity;
    json["box_notes"] = explanation.policy.box_notes;
    json["projects"] = projects_json(explanation.policy.projects);
    json["toolchains"] = to_json(explanation.toolchains);
    add_network(explanation.policy, json);
    json["hardening"] = calls_json(explanation.policy);
    json["limits"] = to_json(explanation.limits);
    json["said"] = said_json(explanation.policy);
    json["scratch"] = explanation.policy.scratch == ScratchKind::tmpfs ? "tmpfs" : "disk";
    if (has_unit(sandbox.method)) json["unit"] = {{"service", "pi-agent-ID.service"}, {"scope", "pi-agent-run-ID.scope"}};
    if (const auto &directory = explanation.directory) {
        json["directory"] = {{"path", directory->path}, {directory->allowed.value_or(false) ? "root" : "reason", directory->text}};
        json["directory"]["allowed"] = directory->allowed ? nlohmann::json(*directory->allowed) : nlohmann::json(nullptr);
    }
    return json;
}

} // namespace pi_agent
