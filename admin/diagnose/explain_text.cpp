// An explanation, and what a code, a fault or a key means, as text for people and as JSON for programs.
#include "admin/diagnose/data.hpp"
#include "admin/diagnose/explain.hpp"

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
                                   escape_for_display(rules.config_directory), keys_text(rules));
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
    std::string text;
    for (const auto &one : texts)
        text += (text.empty() ? "" : ", ") + escape_for_display(one);
    return text;
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
            {"aftermath", projects.aftermath}};
}

std::string box_text(const Explanation &explanation)
{
    const auto &policy = explanation.policy;
    const bool in_memory = policy.scratch == ScratchKind::tmpfs;
    const auto named = [](const char *label, const auto &texts) { return texts.empty() ? "" : label + joined_safely(texts); };
    const auto *failure = std::get_if<Failure>(&explanation.shown);
    auto text =
        fmt::format("scratch:  {} (scratch: {}): /tmp and /var/tmp of each session, TMPDIR={} there; removed when it ends\n",
                    in_memory ? fmt::format("in memory, at most {} of it", scratch_memory_share) : "on the disk of the state directory",
                    in_memory ? "tmpfs" : "disk", tmpdir_of("ID")) +
        fmt::format("view:     {}{}{}\n{}",
                    explanation.policy.view == View::minimal ? "minimal: read-only /usr, /opt, of /etc what programs need"
                                                             : "host: read-only /usr, /opt, /etc",
                    named("; besides: ", shown_besides(explanation)), named("; devices: ", texts_of(explanation.policy.devices)),
                    failure != nullptr ? fmt::format("          no start is possible: {}\n", failure->what()) : "") +
        projects_text(policy.projects) + to_text(explanation.toolchains) + network_text(policy) + calls_text(policy) +
        to_text(explanation.limits) + told_text(policy);
    for (const auto &missing : explanation.missing_tools)
        text += fmt::format("tools:    {}\n", name_package(missing));
    return text;
}

// --- What a code of a message, a fault of doctor or a key of the policy means, and what to do: pi-agentctl explain WORD. The texts about
// codes and faults are those of docs/troubleshooting.md, which the build puts into this program.

constexpr std::string_view page = PI_AGENT_TROUBLESHOOTING;
constexpr std::size_t answer_columns = 100;

// `text` in lines of at most answer_columns, of which all but the first are indented as `first` is long; a word is never divided. A
// terminal shows no type face: literal words go between apostrophes.
std::string wrapped(const std::string &first, std::string_view text)
{
    std::string all;
    std::string line = first;
    bool is_begun = false;
    // Divides text at spaces, but what is between backquotes is one word: a command is pasted as a whole.
    std::vector<std::string> words;
    bool is_open = false;
    for (const auto word : split(text, ' ')) {
        if (is_open)
            words.back() += " " + std::string(word);
        else
            words.emplace_back(word);
        if (std::ranges::count(word, '`') % 2 != 0) is_open = !is_open;
    }
    for (const auto &word : words) {
        if (is_begun && line.size() + 1 + word.size() > answer_columns) {
            all += line + "\n";
            line = std::string(first.size(), ' ');
            is_begun = false;
        }
        line += (is_begun ? " " : "") + word;
        is_begun = true;
    }
    all += line + "\n";
    std::ranges::replace(all, '`', '\'');
    return all;
}

// What the page has between `begin` and the next `end`; empty where it has no `begin`.
std::string_view part_of_page(const std::string &begin, std::string_view end, std::size_t from = 0)
{
    const auto at = page.find(begin, from);
    return at == std::string_view::npos ? "" : page.substr(at + begin.size(), page.find(end, at + begin.size()) - at - begin.size());
}

std::string explain_advice(const std::string &name, std::string_view title, std::string_view cause, std::string_view user,
                           std::string_view administrator)
{
    std::string text = fmt::format("{}: {}\n\n{}\n", name, title, wrapped("", cause));
    if (!user.empty()) text += wrapped("User:          ", user);
    if (!administrator.empty()) text += wrapped("Administrator: ", administrator);
    return text;
}

// A section: "**Title.** Cause", and a list of what to do. Its lines are joined, each item of the list to one.
std::optional<std::string> explain_code(const std::string &code)
{
    std::string cause;
    std::string user;
    std::string administrator;
    std::string *part = &cause;
    for (auto line : split(part_of_page("\n### " + code + "\n\n", "\n#"), '\n')) {
        for (const auto &[label, item] :
             {std::pair<std::string_view, std::string *>("- User: ", &user), {"- Administrator: ", &administrator}})
            if (line.starts_with(label)) {
                part = item;
                line.remove_prefix(label.size());
            }
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        *part += (part->empty() || line.empty() ? "" : " ") + std::string(line);
    }
    const auto end = cause.find(".** ");
    if (end == std::string::npos) return std::nullopt;
    const auto title = fmt::format("{} (exit status {})", cause.substr(2, end - 2), code.substr(1, 2));
    return explain_advice(code, title, cause.substr(end + 4), user, administrator);
}

// A row of the page's last table: name, what is wrong, what a user does, what the administrator does.
std::optional<std::string> explain_fault(const std::string &name)
{
    const auto row = part_of_page("\n| `" + name + "` | ", "\n", page.find("\n## By the name of a fault\n"));
    auto cells = split(row, '|');
    if (cells.size() < 3) return std::nullopt;
    for (auto &cell : cells) {
        cell.remove_prefix(std::min(cell.find_first_not_of(' '), cell.size()));
        cell = cell.substr(0, cell.find_last_not_of(' ') + 1);
    }
    return explain_advice(name, "a fault that pi-agentctl doctor finds", cells[0], cells[1], cells[2]);
}

using KeyParts = std::span<const std::string_view>;

// A free name may have dots, except at the end.
bool are_of_one_key(KeyParts ours, KeyParts asked)
{
    if (ours.empty() || asked.empty()) return ours.empty() && asked.empty();
    if (ours.front() != "*") return ours.front() == asked.front() && are_of_one_key(ours.subspan(1), asked.subspan(1));
    if (ours.size() == 1) return asked.size() == 1 && !asked.front().empty();
    for (std::size_t length = 1; length < asked.size() && !asked[length - 1].empty(); ++length)
        if (are_of_one_key(ours.subspan(1), asked.subspan(length))) return true;
    return false;
}

std::string explain_key(const PolicyKey &key)
{
    std::string text = display_path(key) + (key.required ? ", a required key" : ", a key") + " of the policy\n\n";
    text += wrapped("", key.meaning) + "\n" + wrapped("value:   ", form_text(key));
    if (!key.standard.empty()) text += wrapped("default: ", key.standard);
    if (!key.example.empty()) text += wrapped("example: ", key.example);
    return text + "\nMore: man pi-agent-policy\n";
}

} // namespace

std::vector<std::string> texts_of(const std::vector<PolicyPath> &paths)
{
    std::vector<std::string> texts;
    for (const auto &path : paths)
        texts.push_back(path.path);
    return texts;
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
    json["roots"] = nlohmann::json::array();
    for (const auto &root : explanation.roots)
        json["roots"].push_back(root_json(root));
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

std::optional<std::string> explain_word(const std::string &word)
{
    if (auto text = explain_code(word)) return text;
    if (auto text = explain_fault(word)) return text;
    // As messages write it: "users.alice.roots" is the key "users.NAME.roots" of the table, and "users.Jane.Doe.roots[0].mask" is
    // "users.NAME.roots[N].mask".
    std::string asked;
    for (const char byte : word)
        if (byte != ']') asked += byte == '[' ? '.' : byte;
    for (const auto &key : policy_keys())
        if (word == display_path(key) || are_of_one_key(split(key.path, '.'), split(asked, '.'))) return explain_key(key);
    return std::nullopt;
}

} // namespace pi_agent
