// Reading sudo's whole configuration through sudo's own tools.
#include "admin/sudo_faults.hpp"

#include "admin/changes.hpp"
#include "admin/program.hpp"
#include "admin/sudoers.hpp"
#include "build_config.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "common/policy_load.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace pi_agent {

namespace {

using Json = nlohmann::json;

constexpr const char *main_file = "/etc/sudoers";
constexpr const char *rules = "/etc/sudoers.d";
constexpr const char *look = "look through /etc/sudoers and /etc/sudoers.d (visudo)";

// One command of one rule, with the options of its tags (NOPASSWD: is "authenticate": false).
struct Rule {
    std::string command;
    bool negated;
    Json options; // object; what is absent has sudo's default
};

// What one list of options says: they come as objects of one name each, an "operation" among them for lists.
Json merged(const Json &options)
{
    Json all = Json::object();
    for (const auto &option : options)
        for (const auto &[name, value] : option.items())
            all[name] = value;
    return all;
}

std::vector<Rule> rules_of(const Json &sudoers)
{
    std::vector<Rule> found;
    for (const auto &spec : sudoers.value("User_Specs", Json::array()))
        for (const auto &commands : spec.at("Cmnd_Specs"))
            for (const auto &command : commands.at("Commands"))
                found.push_back(
                    {command.value("command", ""), command.value("negated", false), merged(commands.value("Options", Json::array()))});
    return found;
}

// Defaults of everybody, of this user and of the runner; the filter has left the others out.
Json defaults_of(const Json &sudoers)
{
    Json all = Json::object();
    const std::vector<const char *> kinds = {"", "username", "command"}; // in the order in which sudo applies them
    for (const std::string kind : kinds)
        for (const auto &defaults : sudoers.value("Defaults", Json::array())) {
            const auto binding = defaults.value("Binding", Json::array());
            const bool fits = kind.empty() ? binding.empty() : !binding.empty() && binding[0].contains(kind);
            if (fits) all.update(merged(defaults.at("Options")));
        }
    return all;
}

void judge_rules(const std::vector<Rule> &found, const std::string &user, const std::string &runner, Faults &faults)
{
    const std::string exact = runner + " \"\"";
    bool is_there = false;
    for (const auto &rule : found) {
        is_there = is_there || (rule.command == exact && !rule.negated);
        if (rule.command.compare(0, runner.size(), runner) == 0 && rule.command != exact)
            faults.push_back({"sudo-rule-wider",
                              "sudo lets " + user + " run " + escape_for_display(rule.command) + ", and the policy's rule is " + runner +
                                  " without arguments",
                              std::string("remove that rule: ") + look});
    }
    if (!is_there) {
        faults.push_back({"sudo-rule", "sudo has no rule that lets " + user + " start the runner", "sudo pi-agentctl apply"});
        return;
    }
    const Rule &last = found.back();
    if (last.negated || last.options.value("authenticate", true))
        faults.push_back({"sudo-rule-shadowed",
                          "a later sudo rule of " + user + " (" + escape_for_display(last.command) +
                              ") takes the place of the policy's, and " + (last.negated ? "forbids the runner" : "asks for a password"),
                          std::string("put it before /etc/sudoers.d/pi-agent, whose name sorts among the others: ") + look});
    if (last.options.value("setenv", false) && last.command != "ALL") // who may run everything needs no variable
        faults.push_back({"sudo-environment",
                          "a sudo rule of " + user + " (" + escape_for_display(last.command) +
                              ") has SETENV:, so the user may set any variable for the runner",
                          std::string("put it before /etc/sudoers.d/pi-agent, or remove the tag: ") + look});
}

void judge_defaults(const Json &defaults, const std::string &user, Faults &faults)
{
    const auto add = [&](const char *about, const std::string &what) {
        faults.push_back({about, what + " (for " + user + ")", "sudo pi-agentctl apply, and remove what a later Defaults line says"});
    };
    if (!defaults.value("env_reset", true)) add("sudo-environment", "sudo hands the runner the user's whole environment (!env_reset)");
    if (defaults.value("setenv", false)) add("sudo-environment", "sudo lets the user set any variable for the runner (setenv)");
    for (const auto &name : defaults.value("env_keep", Json::array()))
        if (name.is_string() && (name == "*" || name.get<std::string>().compare(0, 5, "SUDO_") == 0))
            add("sudo-environment", "sudo keeps the user's own " + escape_for_display(name.get<std::string>()) + " (env_keep)");
    if (defaults.value("requiretty", false)) add("sudo-terminal", "sudo starts the runner only on a terminal (requiretty)");
    for (const char *log : {"log_input", "log_output", "use_pty"})
        if (defaults.value(log, false)) add("sudo-terminal", std::string("sudo puts itself between the user and the runner (") + log + ")");
}

} // namespace

Faults judge_sudoers(const std::string &json, const std::string &user, const std::string &runner)
{
    Faults faults;
    try {
        const auto sudoers = Json::parse(json);
        judge_rules(rules_of(sudoers), user, runner, faults);
        judge_defaults(defaults_of(sudoers), user, faults);
    } catch (const Json::exception &failure) {
        throw Failure(ExitStatus::system_failure, std::string("cvtsudoers says what cannot be understood: ") + failure.what());
    }
    return faults;
}

Faults find_sudo_faults(const AsRoot &root, const Policy &policy, const std::vector<std::string> &users)
{
    Faults faults;
    std::ostringstream changes_text;
    Changes changes(true, changes_text);
    install_sudoers(root, rules, sudoers_text(policy, policy_path, PI_AGENT_RUNNER_PATH), changes);
    if (changes.count() > 0)
        faults.push_back(
            {"sudo-rule", "the sudo rule in /etc/sudoers.d/pi-agent is not there, or not as the policy says", "sudo pi-agentctl apply"});
    const auto read = run_program({"visudo", "-c"});
    if (read.status != 0)
        faults.push_back(
            {"sudo-configuration", "visudo -c refuses the sudo configuration: " + one_line(read.output), "correct it with visudo"});
    else if (changes.count() == 0 && read.output.find("/etc/sudoers.d/pi-agent:") == std::string::npos)
        faults.push_back({"sudo-rule", "sudo does not read /etc/sudoers.d/pi-agent", "add '@includedir /etc/sudoers.d' to /etc/sudoers"});
    if (!faults.empty()) return faults; // what follows would be the same once more
    for (const auto &user : users) {
        const auto result =
            run_program({"cvtsudoers", "-e", "-M", "-f", "json", "-m", "user=" + user + ",cmd=" + PI_AGENT_RUNNER_PATH, main_file});
        if (result.status != 0)
            throw Failure(ExitStatus::unavailable, "cvtsudoers cannot read the sudo configuration: " + one_line(result.output));
        for (auto &fault : judge_sudoers(result.output, user, PI_AGENT_RUNNER_PATH))
            faults.push_back(std::move(fault));
    }
    return faults;
}

} // namespace pi_agent
