// Says which rule lets a session see a path or reach a host, and which does not: `pi-agentctl why`.
#include "admin/diagnose/explain.hpp"
#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "runner/inside/canary.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <sstream>

namespace pi_agent {

namespace {

const char *verdict_on_host(Reach reach)
{
    return reach == Reach::yes ? "may be reached" : reach == Reach::no ? "cannot be reached" : "cannot be decided by its name";
}

std::string place_in_answer(const HostAccess &access)
{
    return access.where.line > 0 ? to_string(access.where) : "";
}

// A user, a group or a root may say it instead of the whole policy.
std::string key_in_answer(const HostAccess &access, const Policy &policy)
{
    const std::string first = access.key.substr(0, access.key.find('.'));
    const auto &places = policy.rules.places;
    const auto place = places.find(first);
    return place == places.end() ? access.key : place->second.key + access.key.substr(first.size());
}

// --- Says which rule lets a path be seen or written, and which hides it: `pi-agentctl why PATH`.

constexpr int answer_patience_seconds = 120;
constexpr std::size_t paths_limit = 1000; // they are arguments

std::vector<PathAccess> read_answers(const std::string &output, std::size_t count)
{
    std::string said;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("{\"paths\":", 0) != 0) {
            said += "\n  " + escape_for_display(line);
            continue;
        }
        if (auto answers = decode_path_access(line); answers.size() == count) return answers;
    }
    throw Failure(ExitStatus::unavailable, "no session answered, and pi said:" + (said.empty() ? " nothing" : said));
}

std::vector<PathAccess> ask(const Observer &observer, const Account &user, const std::string &directory,
                            const std::vector<std::string> &paths)
{
    std::vector<std::string> command = {"env", "--chdir=" + directory,      build::wrapper_path, "--pi-agent-shell",
                                        "-c",  "exec \"$0\" --look \"$@\"", build::canary_path};
    command.insert(command.end(), paths.begin(), paths.end());
    const auto result = observer.root() ? run_as_user(*observer.root(), user, command, answer_patience_seconds, NewPrivileges::allowed)
                                        : run_program_apart(command, answer_patience_seconds);
    return read_answers(result.output, paths.size());
}

std::string verdict(const PathAccess &access)
{
    if (!access.exists) return "does not exist";
    if (!access.leads_to.empty()) return "leads to what does not exist";
    std::string may;
    for (const auto &[is_so, word] : {std::pair{access.read, "read"}, {access.write, "write"}, {access.execute, "execute or enter"}})
        if (is_so) may += (may.empty() ? "may " : ", ") + std::string(word);
    return may.empty() ? "may not be read, written or executed" : may;
}

// What the host has at a path, or where links lead from there inside, as far as the caller can see.
enum class OnHost { unknown, nothing, directory, other };

// By the caller: a user sees less than the agent may be shown, and nothing is concluded from that.
OnHost look_on_host(const std::string &path)
{
    struct stat facts {};
    if (lstat(path.c_str(), &facts) != 0) return errno == ENOENT || errno == ENOTDIR ? OnHost::nothing : OnHost::unknown;
    return S_ISDIR(facts.st_mode) ? OnHost::directory : OnHost::other;
}

struct Reason {
    std::string rule; // "in the project's root /srv/app"
    std::string key;  // of the policy: "projects.protect"; empty when no key changes it
    Position where;   // of what the policy says, when it says something
};

constexpr const char *hidden_homes = "homes are hidden, except what a root or a toolchain names";
constexpr const char *hidden_host = "no part of the host is shown except what a rule names";

struct RuledPlace {
    std::string path;
    Reason reason;
};

std::vector<RuledPlace> places_of(const Explanation &explanation)
{
    const auto &policy = explanation.policy;
    std::vector<RuledPlace> places;
    const auto add = [&](const std::string &path, const std::string &rule, const std::string &key, const Position &where = {}) {
        places.push_back({path, {rule, key, where}});
    };
    add("/", hidden_host, "view_paths");
    for (const auto trees : program_trees)
        add(std::string(trees), "the host's programs, read-only in every view", "");
    for (const auto tree : package_data)
        add(std::string(tree), "what the host's packages keep for their programs, read-only in every view", "");
    add("/etc",
        policy.view == View::minimal ? "of /etc the minimal view shows what programs need, read-only"
                                     : "the host view shows /etc, read-only",
        policy.view == View::minimal ? "view, or view_paths" : "view");
    add("/proc", "the session's own processes", "");
    add("/sys", "processors and memory, read-only", "");
    add("/dev", "devices that hold nothing, and the session's terminals", "");
    for (const auto &device : policy.devices)
        add(device.path == nvidia_devices ? "/dev/nvidia" : device.path, "a device of the host's that the policy names", "devices",
            device.where);
    add("/home", hidden_homes, "");
    add(explanation.user.home, hidden_homes, "");
    add("/root", "homes are hidden", "");
    for (const char *own : {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"})
        add(own, "the session's own, gone with it", "scratch");
    add("/AGENTS.md", "what the agent is told of its sandbox", "box_notes");
    for (const auto &path : policy.view_paths)
        add(path.path, "shown besides, read-only", "view_paths", path.where);
    if (const auto *view = std::get_if<HostView>(&explanation.shown))
        for (const auto &tree : view->trees)
            if (std::ranges::none_of(places, [&](const RuledPlace &place) { return place.path == tree; }))
                add(tree, "the agent's program, or what certificates lead to, read-only", "agent.binary");
    add(explanation.home, "the agent's home, kept from session to session", "");
    const auto problem_with = [&](const PolicyPath &one) -> std::string {
        for (const auto *list : {&explanation.toolchains.readable, &explanation.toolchains.caches})
            for (const auto &directory : *list)
                if (directory.path == one.path && directory.finding.kind == Finding::Kind::unusable) return directory.finding.text;
        return "";
    };
    const auto on_host = [&](const std::string &path) {
        return path.starts_with('/') ? with_users_name(path, explanation.user.name) : join_path(explanation.user.home, path);
    };
    const auto add_shown = [&](const PolicyPath &one, bool is_cache, const char *shown_as) {
        const std::string key = key_of_home_directory(policy.rules, one.path, is_cache);
        const std::string problem = problem_with(one);
        const std::string rule = problem.empty() ? shown_as : escape_for_display(written_home_path(one.path)) + " is not shown: " + problem;
        const std::string inside = place_in_agent_home(one.path);
        for (const auto &shown :
             {is_at_own_path(one.path, is_cache) ? on_host(one.path) : "", inside.empty() ? "" : join_path(explanation.home, inside)}) {
            if (shown.empty()) continue;
            add(shown, rule, key, one.where);
            for (const auto &name : masked_in(one.path))
                add(join_path(shown, name), "it holds credentials, so a session finds nothing with that name there", key, one.where);
        }
    };
    const auto is_toolchain = [&](const PolicyPath &one) {
        return key_of_home_directory(policy.rules, one.path, false).starts_with("toolchains");
    };
    for (const auto &one : policy.toolchains.readable.paths)
        add_shown(one, false,
                  is_toolchain(one) ? "a toolchain of the user's, read-only" : "a directory that the user reads, too, read-only");
    for (const auto &one : policy.toolchains.caches.paths)
        add_shown(one, true, "a copy of the user's cache; what changes in it ends with the session");
    return places;
}

// Inside the project.
Reason reason_in_project(const std::string &path, const std::string &root, const PathAccess &access, const Explanation &explanation)
{
    const auto &policy = explanation.policy;
    const auto &where = explanation.directory->where;
    const std::string below = path == root ? "" : path.substr(root.size() + 1);
    for (const auto &other : explanation.roots)
        if (other.granted.spec.rules && other.finding.text != explanation.directory->text && is_within(path, other.finding.text) &&
            is_within(other.finding.text, explanation.directory->text))
            return {"it is a root with rules of its own, which sessions that start elsewhere do not see", "", other.granted.spec.where};
    const PolicyPath *mask = mask_over(policy.projects.mask, below);
    if (!access.read && mask != nullptr)
        return {"the administrator keeps it from agents (" + mask->path + ")", "projects.mask", mask->where};
    if (access.exists && !access.read && access.mount == path && !policy.projects.mask.empty())
        return {"it is, or may be, another name (a hard link) of what the administrator keeps from agents", "projects.mask",
                policy.projects.mask.front().where};
    if (access.exists && !access.write && policy.projects.read_only)
        return {"the project is read-only in the sessions of " + explanation.user.name, "projects.read_only", {}};
    if (access.exists && !access.write && access.read_only) {
        const std::string busy = "; while a session runs nobody outside can replace it either (\"Device or resource busy\")";
        const char *rule =
            policy.projects.protect ? "the policy protects it, read-only" : "git runs things from there for the user, so it is read-only";
        return {rule + busy, "projects.protect", {}};
    }
    if (!access.exists && policy.projects.scope == ProjectScope::project)
        return {"of the root " + escape_for_display(root) + " a session shows the repository alone", "projects.scope", where};
    const std::string granted = "in the project's root " + escape_for_display(root);
    if (access.exists && !access.write) return {granted + ", where its own mode keeps the user out, too", "", where};
    // What would take it from sessions again. The root itself can only be taken as a whole.
    if (access.exists && access.read && path != root) return {granted, "projects.mask, projects.protect or projects.read_only", where};
    return {granted, "", where};
}

// Where a session shows the project's root of `explanation.directory`; empty where that is not allowed.
std::string shown_root(const Explanation &explanation)
{
    const auto &directory = explanation.directory;
    if (!directory || !directory->allowed.value_or(false)) return "";
    if (explanation.policy.projects.paths == ProjectPaths::host) return directory->text;
    return explanation.home + "/" + alias_directory + "/" + alias_of(directory->text);
}

// Which key would show a part of a home. Programs in hidden directories are for `toolchains`; a root is a directory of projects.
Reason reason_in_homes(const std::string &path, OnHost on_host, const Explanation &explanation)
{
    const auto &entry = std::get<AccessRules>(explanation.access).entry; // of several groups, the first
    const std::string roots = entry.substr(0, entry.find(", ")) + ".roots";
    const std::string &home = explanation.user.home;
    if (problem_of_secrets_anywhere(path))
        return {"no session is shown it: it holds credentials, or runs code for its user, as other places of that name do", "", {}};
    if (!is_within(path, home)) return {hidden_homes, problem_of_root(path) ? "" : roots, {}};
    if (path == home) return {"a home itself is shown to no session", "", {}};
    const std::string below = path.substr(home.size() + 1);
    const bool lies_in_home_itself = below.find('/') == std::string::npos;
    if (lies_in_home_itself && on_host == OnHost::other) return {"a file in a home itself is shown to no session", "", {}};
    // For a file: the directory around it would be named.
    const std::string directory = on_host == OnHost::other ? parent_of(path).substr(home.size() + 1) : below;
    if (const auto problem = problem_of_secrets(directory)) return {"it " + problem->text, "", {}};
    return {hidden_homes, below[0] == '.' ? "toolchains.readable" : roots + ", or of programs toolchains.readable", {}};
}

// `path` is absolute and normal, as the session sees it. No key is named that `check` would refuse there.
Reason reason_for(const std::string &path, const PathAccess &access, OnHost on_host, const Explanation &explanation)
{
    if (!access.leads_to.empty()) {
        const auto beyond = reason_for(access.leads_to, PathAccess{}, on_host, explanation);
        return {std::string(access.exists ? "a symlink, which" : "a symlink on the way") + " leads to " +
                    escape_for_display(access.leads_to) + ": " + beyond.rule,
                beyond.key, beyond.where};
    }
    const auto places = places_of(explanation);
    const RuledPlace *innermost = &places.front();
    for (const auto &place : places)
        if (is_within(path, place.path) && place.path.size() >= innermost->path.size()) innermost = &place;
    if (const std::string root = shown_root(explanation); !root.empty() && is_within(path, root) && root.size() >= innermost->path.size())
        return reason_in_project(path, root, access, explanation);
    if (!access.exists && on_host == OnHost::nothing) return {"nothing is there on the host either", "", {}};
    if (innermost->reason.rule == hidden_homes) return reason_in_homes(path, on_host, explanation);
    if (innermost->reason.rule == hidden_host && problem_of_view_path(path)) return {hidden_host, "", {}};
    return innermost->reason;
}

// A user, a group or a root may say it instead of the whole policy.
Reason said_where(Reason reason, const Explanation &explanation)
{
    const auto &places = explanation.policy.rules.places;
    const auto place = places.find(reason.key);
    if (place == places.end()) return reason;
    reason.key = place->second.key;
    if (reason.where.line == 0) reason.where = place->second.where;
    return reason;
}

} // namespace

std::optional<HostRule> host_of_question(const std::string &text, const std::string &directory)
{
    const bool is_url = text.find("://") != std::string::npos;
    if (text.empty() || text.front() == '.' || (!is_url && text.find('/') != std::string::npos)) return std::nullopt;
    if (text.starts_with("*.")) throw Failure(ExitStatus::usage, quote(text) + " is many hosts; name one of them");
    const auto asked = parse_host_question(text);
    if (!asked && is_url)
        throw Failure(ExitStatus::usage, quote(text) + " is not the name of a host; ask as in github.com:22 or https://github.com");
    if (!asked || is_url || text.find(':') != std::string::npos || is_address(*asked) || asked->host == "localhost") return asked;
    std::error_code unknown;
    const bool is_file = std::filesystem::exists(std::filesystem::symlink_status(std::filesystem::path(directory) / text, unknown));
    if (is_file || asked->host.find('.') == std::string::npos) return std::nullopt;
    return asked;
}

std::string host_text(const HostRule &asked, const Policy &policy)
{
    const auto access = host_access(policy.network, routed_providers(policy), asked);
    const std::string where = place_in_answer(access);
    return fmt::format("{}: {}\n  rule:      {}{}\n  to change: {}\n", host_and_port(asked.host, asked.port), verdict_on_host(access.reach),
                       access.rule, where.empty() ? "" : " (" + where + ")", key_in_answer(access, policy));
}

nlohmann::json host_json(const HostRule &asked, const Policy &policy)
{
    const auto access = host_access(policy.network, routed_providers(policy), asked);
    return {{"host", asked.host},
            {"port", asked.port},
            {"reach", access.reach == Reach::unknown ? nlohmann::json() : nlohmann::json(access.reach == Reach::yes)},
            {"rule", access.rule},
            {"key", key_in_answer(access, policy)},
            {"where", place_in_answer(access)},
            {"may_be_added", access.may_be_added}};
}

void run_why(const WhyOptions &options, std::ostream &out)
{
    const auto observer = Observer::self();
    const auto user = account_to_explain(options.user, observer);
    if (!observer.can_look_for(user)) throw Failure(FailureKind::root_only, "only root can ask for another user; use sudo");
    if (options.user && !options.directory) throw Failure(ExitStatus::usage, "name one of the user's directories: --cwd DIRECTORY");
    if (options.paths.size() > paths_limit) throw Failure(ExitStatus::usage, fmt::format("at most {} paths at once", paths_limit));
    const auto explanation = explain(load_policy(policy_path), policy_path, observer, user, options.directory.value_or("."));
    if (const auto *refused = std::get_if<NotAuthorised>(&explanation.access)) throw Failure(ExitStatus::denied, refused->text);
    const auto &directory = *explanation.directory;
    const auto is_host = [&](const std::string &asked) { return host_of_question(asked, directory.path).has_value(); };
    const bool is_outside = !directory.allowed.value_or(true);
    if (is_outside && !std::ranges::all_of(options.paths, is_host)) // a host needs no directory, but a root may have a network of its own
        throw Failure(ExitStatus::denied, escape_for_display(directory.path) + ": " + directory.text);
    // Where the session begins, by its own names (projects.paths: alias).
    const std::string inside = shown_root(explanation) + directory.path.substr(std::min(directory.text.size(), directory.path.size()));
    std::vector<std::string> paths;
    auto hosts = nlohmann::json::array();
    for (const auto &path : options.paths) {
        const auto host = host_of_question(path, directory.path);
        if (host) hosts.push_back(host_json(*host, explanation.policy));
        if (host && !options.json)
            out << host_text(*host, explanation.policy) << hint_of_file(path, *host)
                << (is_outside ? "  where:     in roots without a network of their own, for this directory is in no root\n" : "");
        if (!host) {
            std::string normal = (std::filesystem::path(inside) / path).lexically_normal();
            if (normal.size() > 1 && normal.back() == '/') normal.pop_back();
            if (normal.find('\n') != std::string::npos) throw Failure(ExitStatus::usage, "a path must not contain a line break");
            paths.push_back(normal);
        }
    }
    const auto answers = paths.empty() ? std::vector<PathAccess>() : ask(observer, user, directory.path, paths);
    auto json = nlohmann::json::array();
    for (std::size_t index = 0; index < paths.size(); ++index) {
        const auto &access = answers[index];
        const auto reason = said_where(
            reason_for(paths[index], access, look_on_host(access.leads_to.empty() ? paths[index] : access.leads_to), explanation),
            explanation);
        const std::string where = reason.where.line > 0 ? to_string(reason.where) : "";
        if (options.json) {
            json.push_back({{"path", paths[index]},
                            {"exists", access.exists},
                            {"read", access.read},
                            {"write", access.write},
                            {"execute", access.execute},
                            {"mount", access.mount},
                            {"rule", reason.rule},
                            {"key", reason.key},
                            {"where", where}});
            continue;
        }
        out << fmt::format("{}: {}\n  rule:      {}{}\n  to change: {}\n", escape_for_display(paths[index]), verdict(access), reason.rule,
                           where.empty() ? "" : " (" + where + ")", reason.key.empty() ? "no key of the policy does" : reason.key);
    }
    if (options.json) print_json({{"user", user.name}, {"directory", directory.path}, {"paths", json}, {"hosts", hosts}}, out);
}

} // namespace pi_agent
