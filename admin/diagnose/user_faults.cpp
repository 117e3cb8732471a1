// What of sudo and of users' own things keeps a start from being what it should.
#include "admin/diagnose/faults.hpp"

#include "admin/programs/program.hpp"
#include "common/host/beneath.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <sstream>

namespace pi_agent {

// --- Reads sudo's whole configuration through sudo's own tools.

namespace {

using Document = nlohmann::json;

constexpr const char *rule_file = "/etc/sudoers.d/pi-agent";
constexpr const char *sudo_look = "look through /etc/sudoers and /etc/sudoers.d (visudo)";

// One command of one rule, with the options of its tags (NOPASSWD: is "authenticate": false).
struct Rule {
    std::string command;
    bool negated;
    Document options; // object; what it does not have has sudo's default
};

Document merged(const Document &options)
{
    Document all = Document::object();
    for (const auto &option : options)
        for (const auto &[name, value] : option.items())
            all[name] = value;
    return all;
}

// Without a list of users a rule is for root.
bool is_for_root(const Document &commands)
{
    const auto users = commands.value("runasusers", Document::array());
    bool is = users.empty();
    for (const auto &user : users)
        if (user.value("username", "") == "root" || user.value("username", "") == "ALL" || user.value("userid", 1) == 0)
            is = !user.value("negated", false);
    return is;
}

// sudoers(5): a path, with "" for no arguments, with arguments, or without a word of them; a directory; a pattern.
bool concerns(const std::string &command, const std::string &runner)
{
    if (command == "ALL" || command == runner || command.rfind(runner + " ", 0) == 0) return true;
    if (!command.empty() && command.back() == '/')
        return runner.rfind(command, 0) == 0 && runner.find('/', command.size()) == std::string::npos;
    return fnmatch(command.substr(0, command.find(' ')).c_str(), runner.c_str(), FNM_PATHNAME) == 0;
}

// Lists are assigned, added to, taken from, and emptied ("name": false).
void apply_list(const std::string &name, const Document &value, const std::string &operation, Document &all)
{
    Document &list = all[name];
    if (!value.is_array() || operation.empty()) {
        list = value.is_array() ? value : Document::array();
        return;
    }
    for (const auto &item : value) {
        if (!list.is_array()) list = Document::array();
        list.erase(std::remove(list.begin(), list.end(), item), list.end());
        if (operation == "list_add") list.push_back(item);
    }
}

// What messages say instead of "pi-agentctl apply" where the system's configuration brings the rule.
const char *const bring_sudo_rule =
    build::is_system_managed ? "rebuild the system, whose configuration brings the rule" : "sudo pi-agentctl apply";

void judge_rules(const std::vector<Rule> &found, const std::string &user, const std::string &runner, Faults &faults)
{
    const std::string exact = runner + " \"\"";
    bool is_there = false;
    for (const auto &rule : found) {
        is_there = is_there || (rule.command == exact && !rule.negated);
        if (rule.command.rfind(runner, 0) == 0 && rule.command != exact && !rule.negated)
            faults.push_back({"sudo-rule-wider",
                              "sudo lets " + user + " run " + escape_for_display(rule.command) + ", and the policy's rule is " + runner +
                                  " without arguments",
                              std::string("remove that rule: ") + sudo_look});
    }
    if (!is_there) {
        faults.push_back({"sudo-rule", "sudo has no rule that lets " + user + " start the runner", bring_sudo_rule});
        return;
    }
    const Rule &last = found.back();
    if (last.negated || last.options.value("authenticate", true))
        faults.push_back({"sudo-rule-shadowed",
                          "a later sudo rule of " + user + " (" + escape_for_display(last.command) +
                              ") takes the place of the policy's, and " + (last.negated ? "forbids the runner" : "asks for a password"),
                          std::string("put it before /etc/sudoers.d/pi-agent, whose name sorts among the others: ") + sudo_look});
    if (last.options.value("setenv", false) && last.command != "ALL") // a user who may run everything needs no variable
        faults.push_back({"sudo-environment",
                          "a sudo rule of " + user + " (" + escape_for_display(last.command) +
                              ") has SETENV:, so the user may set any variable for the runner",
                          std::string("put it before /etc/sudoers.d/pi-agent, or remove the tag: ") + sudo_look});
}

// Of a switch, number, time or path: sudo's default is none of them.
bool is_set(const Document &settings, const std::string &name)
{
    const Document value = settings.value(name, Document(false));
    return value != false && value != 0 && value != "0";
}

void judge_defaults(const Document &defaults, const std::string &user, SudoKind kind, Faults &faults)
{
    const auto add = [&](const char *about, const std::string &what) {
        faults.push_back({about, what + " (for " + user + ")",
                          std::string(bring_sudo_rule) + ", and remove what a later line says, as Defaults or before a command"});
    };
    for (const char *list : {"env_keep", "env_check"})
        for (const auto &name : defaults.value(list, Document::array()))
            add("sudo-environment", "sudo hands the runner the user's own " +
                                        escape_for_display(name.is_string() ? name.get<std::string>() : "") + " (" + list + ")");
    if (defaults.value("use_pty", false)) add("sudo-terminal", "sudo puts itself between the user and the runner (use_pty)");
    for (const char *place : {"runcwd", "runchroot"})
        if (is_set(defaults, place) && defaults[place] != "*")
            add("sudo-start", std::string("sudo starts the runner elsewhere, and does not if it cannot (") + place + ")");
    if (kind == SudoKind::rs) return; // it has none of the rest, and always a fresh environment
    if (!defaults.value("env_reset", true)) add("sudo-environment", "sudo hands the runner the user's whole environment (!env_reset)");
    if (is_set(defaults, "command_timeout")) add("sudo-start", "sudo ends each session after some time (command_timeout)");
    struct Switch {
        const char *name, *about, *effect;
    };
    constexpr Switch switches[] = {{"setenv", "sudo-environment", "sudo lets the user set any variable for the runner"},
                                   {"requiretty", "sudo-terminal", "sudo starts the runner only on a terminal"},
                                   {"log_input", "sudo-terminal", "sudo puts itself between the user and the runner"},
                                   {"log_output", "sudo-terminal", "sudo puts itself between the user and the runner"},
                                   {"log_subcmds", "sudo-start", "sudo follows what the runner starts, and pi hangs"},
                                   {"intercept", "sudo-start", "sudo follows what the runner starts, and pi hangs"},
                                   {"noexec", "sudo-start", "the runner can start no program, such as git"},
                                   {"stay_setuid", "sudo-start", "the runner is not wholly root, and refuses"}};
    for (const auto &[name, about, effect] : switches)
        if (defaults.value(name, false)) add(about, fmt::format("{} ({})", effect, name));
    for (const auto &[name, value] : defaults.items())
        if (name.starts_with("rlimit_") && name != "rlimit_core" && value != false)
            add("sudo-start", "the runner gets limits that it may not be able to lift (" + escape_for_display(name) + ")");
}

// What a rule says before its command counts instead of the Defaults. The right to everything brings setenv along (judge_rules).
Document with_tags(Document defaults, const std::vector<Rule> &found)
{
    if (found.empty()) return defaults;
    for (const auto &[name, value] : found.back().options.items())
        if (name != "setenv") defaults[name] = value;
    return defaults;
}

// --- What is wrong with a user's own things: the documents that a policy has for the agent's home, files that it names, and what the login
// shell starts.

struct NamedFile {
    Position where;
    std::string key, what;
    std::string path; // absolute, or relative to the home
};

void add_certificates(std::vector<NamedFile> &files, const Environment &env, const EnvironmentPlaces &places, const std::string &key)
{
    for (const auto &[name, value] : env) {
        if (!names_certificates(name) || value.empty() || value.front() != '/') continue;
        const auto place = places.find(name);
        files.push_back({place == places.end() ? Position{} : place->second, key + "env." + name, "the file of certificates", value});
    }
}

void refuse(const NamedFile &file, const std::string &shown, const std::string &place, const std::string &whose, Problems &problems)
{
    problems.add(file.where, file.key,
                 file.what + " " + quote(shown) + " lies in " + quote(place) + ", where agents of " + whose +
                     " write: pi would take their changes for those of " + whose,
                 "move it out of all roots, and name the new place");
}

// As the policy writes it: "~/x" for what is relative to the home.
std::string as_text(const std::string &path)
{
    return path.front() == '/' ? path : "~/" + path;
}

constexpr int shell_patience_seconds = 10;
constexpr std::size_t said_limit = 500; // bytes of what it says instead
constexpr const char *found_mark = "pi-agent-found:";
constexpr const char *home_mark = "pi-agent-home:";

// First in sh: where npm, nvm, mise, volta, bun and pnpm put programs of a user's own; a pattern that fits nothing names no file. Then in
// the user's login shell, where that takes -l, -i and -c; else in sh again.
std::string script(const std::string &command)
{
    return "for d in .local/bin bin .npm-global/bin .local/share/npm-global/bin node_modules/.bin .bun/bin .volta/bin .local/share/pnpm "
           ".nvm/versions/node/v[0-9]*/bin .local/share/mise/installs/*/*/bin; do for f in \"$HOME\"/$d/" +
           command + "; do if [ -x \"$f\" ]; then printf '" + home_mark + "%s\\n' \"$f\"; fi; done; done; " + "find='printf \"\\n" +
           found_mark + "%s\\n\" \"$(command -v " + command +
           ")\"'; case ${SHELL##*/} in sh|bash|dash|ksh|mksh|zsh) exec \"$SHELL\" -l -i -c \"$find\";; *) exec sh -l -i -c \"$find\";; "
           "esac";
}

} // namespace

Faults judge_sudoers(const std::string &json, const std::string &user, const std::string &runner, SudoKind kind)
{
    Faults faults;
    try {
        const auto sudoers = Document::parse(json);
        std::vector<Rule> found;
        for (const auto &spec : sudoers.value("User_Specs", Document::array()))
            for (const auto &commands : spec.at("Cmnd_Specs"))
                for (const auto &command : commands.at("Commands"))
                    if (const auto text = command.value("command", ""); is_for_root(commands) && concerns(text, runner))
                        found.push_back({text, command.value("negated", false), merged(commands.value("Options", Document::array()))});
        judge_rules(found, user, runner, faults);
        // The Defaults of commands come last. The filter has left out those of other users. These are for one command, and another
        // command's do not count.
        Document all = Document::object();
        for (const bool of_commands : {false, true}) {
            for (const auto &defaults : sudoers.value("Defaults", Document::array())) {
                const auto binding = defaults.value("Binding", Document::array());
                const bool is_of_command = !binding.empty() && binding[0].contains("command");
                if (is_of_command != of_commands) continue;
                if (is_of_command &&
                    std::ranges::none_of(binding, [&](const Document &bound) { return concerns(bound.value("command", ""), runner); }))
                    continue;
                for (const auto &option : defaults.at("Options"))
                    for (const auto &[name, value] : option.items()) {
                        if (name == "env_keep" || name == "env_check")
                            apply_list(name, value, option.value("operation", ""), all);
                        else
                            all[name] = value;
                    }
            }
        }
        judge_defaults(with_tags(all, found), user, kind, faults);
    } catch (const Document::exception &failure) {
        throw Failure(ExitStatus::system_failure, "the output of cvtsudoers is not valid: " + escape_for_display(failure.what()));
    }
    return faults;
}

Faults find_sudo_faults(const AsRoot &root, const Policy &policy, const std::vector<std::string> &users)
{
    Faults faults;
    std::ostringstream changes_text;
    Changes changes(true, changes_text);
    const auto sudo = installed_sudo_kind();
    if (!build::is_system_managed)
        install_sudoers(root, sudoers_directory, sudoers_text(policy, policy_path, build::runner_path, sudo), sudo, users, changes);
    if (changes.count() > 0)
        faults.push_back(
            {"sudo-rule", "the sudo rule in /etc/sudoers.d/pi-agent is missing, or not as the policy says", "sudo pi-agentctl apply"});
    const auto read = check_sudoers(sudo);
    if (!read.problem.empty())
        faults.push_back({"sudo-configuration", read.problem, "correct it with " + visudo_of(sudo)});
    else if (!build::is_system_managed && changes.count() == 0 && !does_sudo_read(sudo, rule_file, read.output, users))
        faults.push_back(
            {"sudo-rule", std::string("sudo does not read ") + rule_file, "add '@includedir /etc/sudoers.d' to " + main_sudoers_of(sudo)});
    else if (sudo == SudoKind::rs && !has_program("cvtsudoers"))
        faults.push_back({"sudo-configuration", "sudo-rs has no cvtsudoers, so what other rules say of the runner cannot be looked at",
                          "install the package sudo beside it for its cvtsudoers; the wrapper goes on with sudo-rs"});
    if (!faults.empty()) return faults; // what follows would be the same once more
    for (const auto &user : users) {
        // Its own filter by command would leave out what forbids one.
        const auto json =
            require_success({"cvtsudoers", "-e", "-M", "-f", "json", "-m", "user=" + user + ",host=" + host_name(), main_sudoers_of(sudo)},
                            "cvtsudoers cannot read the sudo configuration", {}, ExitStatus::unavailable);
        add(faults, judge_sudoers(json, user, build::runner_path, sudo));
    }
    return faults;
}

void check_named_files(HostCheck &check, const UserEntry &entry, const std::optional<Account> &user)
{
    std::vector<NamedFile> files;
    const std::string key = entry_key(entry) + ".";
    if (entry.config) files.push_back({entry.config_where, key + "config", "the config directory", *entry.config});
    if (entry.ssh_key) files.push_back({entry.ssh_key_where, key + "ssh.key", "the key", *entry.ssh_key});
    if (entry.signing_key) files.push_back({entry.signing_key_where, key + "signing.key", "the key", *entry.signing_key});
    if (check.policy.host_env_files_where.line != 0)
        for (const auto &file : check.policy.host_env_files)
            files.push_back({check.policy.host_env_files_where, "host_env_files", "the file of variables", file});
    add_certificates(files, entry.env, entry.env_where, key);
    add_certificates(files, check.policy.env, check.policy.env_where, "");
    if (files.empty()) return;
    if (!user || !check.observer.can_look_for(*user)) {
        for (const auto &file : files)
            for (const auto &root : entry.roots)
                if (is_within(as_text(file.path), without_trailing_slashes(root.text)))
                    refuse(file, as_text(file.path), root.text, entry_key(entry), check.problems);
        if (user)
            check.unverified.push_back(entry_key(entry) + ": only root or " + user->name + " can verify where files that it names lie");
        return;
    }
    const auto rules = rules_of_user(check.policy, *user);
    if (!rules) return; // nobody starts by it
    const auto paths = mapped(files, [&](const auto &file) { return expand_home(as_text(file.path), *user); });
    const std::vector<Finding> places = check.observer.agents_on_way(check.policy, *rules, *user, paths);
    for (std::size_t index = 0; index < files.size(); ++index)
        if (places[index].kind == Finding::Kind::usable && !places[index].text.empty())
            refuse(files[index], paths[index], places[index].text, user->name, check.problems);
}

std::vector<std::string> names_of_wrapper(const std::string &command, const std::string &wrapper)
{
    std::vector<std::string> names = {wrapper};
    for (const auto &directory : system_path()) {
        const auto name = directory + "/" + command;
        try {
            if (resolve_trusted(name, "command").canonical == wrapper) names.push_back(name);
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): it does not exist, or others than root can change it
        }
    }
    return names;
}

Faults judge_shell(const std::string &output, const std::string &user, const std::string &command, const std::vector<std::string> &wrapper)
{
    Faults faults;
    std::set<std::string> named;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        for (const std::string mark : {found_mark, home_mark}) {
            if (line.compare(0, mark.size(), mark) != 0) continue;
            const std::string found = line.substr(mark.size());
            if (std::ranges::find(wrapper, found) != wrapper.end() || !named.insert(found).second) continue;
            if (found.empty())
                faults.push_back({"no-pi", "the login shell of " + user + " finds no " + command,
                                  "put the directory of " + wrapper.front() + " on its PATH"});
            else if (found[0] == '/')
                faults.push_back({"other-pi",
                                  user + (mark == found_mark ? "'s shell starts " : " has ") + escape_for_display(found) +
                                      ", which is not the wrapper: what it runs is not confined",
                                  "remove it, or ask " + user + " to (npm uninstall -g, or rm)"});
            else
                faults.push_back(
                    {"other-pi", "the login shell of " + user + " has an alias or a function " + command + ": " + escape_for_display(found),
                     "ask " + user + " to remove it"});
        }
    }
    return faults;
}

Faults find_user_faults(const AsRoot &root, const Account &user, const std::string &command, const std::vector<std::string> &wrapper)
{
    std::string problem;
    try {
        const auto result = run_as_user(root, user, {"sh", "-c", script(command)}, shell_patience_seconds, NewPrivileges::refused);
        if (result.output.find(found_mark) != std::string::npos) return judge_shell(result.output, user.name, command, wrapper);
        problem =
            fmt::format(" does not come to the question (status {}): {}", result.status, one_line(result.output.substr(0, said_limit)));
    } catch (const Failure &failure) { // the user's own shell kept it
        problem = std::string(" does not answer: ") + failure.what();
    }
    return {{"shell", "the login shell of " + user.name + problem, "look at its start files"}};
}

} // namespace pi_agent
