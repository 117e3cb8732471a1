// pi-agentctl: the administrators' tool. Reads its command line and runs one command.
#include "admin/apply.hpp"
#include "admin/check.hpp"
#include "admin/doctor.hpp"
#include "admin/explain.hpp"
#include "admin/policy_schema.hpp"
#include "admin/problem_report.hpp"
#include "admin/shell.hpp"
#include "admin/why.hpp"
#include "build_config.hpp"
#include "common/error.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>

namespace {

using namespace pi_agent;

// The value of an option that may be left out.
std::optional<std::string> given(const CLI::Option *option, const std::string &value)
{
    return option->count() > 0 ? std::optional<std::string>(value) : std::nullopt;
}

// What the command line asks for.
using Command = std::function<void()>;

Command parse_command_line(int argc, char **argv)
{
    CLI::App app("Administers pi-agent: checks its policy, makes the host follow it, and explains what it grants.", "pi-agentctl");
    app.set_version_flag("--version", "pi-agentctl " PI_AGENT_VERSION_TEXT);
    app.set_help_all_flag("--help-all", "Print the help of every command and exit");
    app.require_subcommand(0, 1); // none at all is our message: CLI11 would report a misspelt command as a missing one
    app.footer("The policy is " PI_AGENT_POLICY_PATH
               ". Exit status: 0 done, 64 usage, 69 the sandbox does not hold here, 71 the system refused, 75 another apply is running,\n"
               "77 denied, 78 the policy or the host is not valid.");

    std::string file;
    auto *check = app.add_subcommand("check", "Check the policy and whether this host fits it; as root, the roots of every user too");
    const auto *file_option =
        check->add_option("FILE", file, "A draft to check instead of the installed policy, alone and without policy.d");

    bool check_json = false;
    check->add_flag("--json", check_json, "Print JSON");

    bool dry_run = false;
    auto *apply = app.add_subcommand("apply", "Make the host follow the policy: accounts, directories, the agent's program, the sudo rule");
    apply->add_flag("--dry-run", dry_run, "Say what would change, and change nothing");
    bool no_canary = false;
    apply->add_flag("--no-canary", no_canary,
                    "Do not try the sandbox afterwards: where no session can run yet, as in an image that is being built");

    DoctorOptions doctor_options;
    std::string patient;
    auto *doctor =
        app.add_subcommand("doctor", "Look for every way around pi and every reason why it would not start, and try the sandbox");
    const auto *patient_option =
        doctor->add_option("--user", patient, "Who tries the sandbox; without it the first user who has a root")->type_name("NAME");
    doctor->add_flag("--attack", doctor_options.attack, "Print everything that the sandbox was tried with, and what came of it");
    doctor->add_flag("--json", doctor_options.json, "Print JSON");

    std::string user;
    std::string directory;
    bool json = false;
    auto *explain = app.add_subcommand("explain", "Explain what the policy grants to a user, and where");
    const auto *user_option = explain->add_option("--user", user, "Whose access; without it your own")->type_name("NAME");
    const auto *directory_option = explain->add_option("--cwd", directory, "The directory to start pi in")->type_name("DIRECTORY");
    explain->add_flag("--json", json, "Print JSON");

    WhyOptions why_options;
    std::string whose;
    std::string where;
    auto *why = app.add_subcommand("why", "Say whether the agent may read or write paths, by which rule, and which key changes it");
    why->add_option("PATH", why_options.paths, "What to ask about; relative paths count from the directory")->required();
    const auto *whose_option = why->add_option("--user", whose, "Whose agent; without it your own")->type_name("NAME");
    const auto *where_option = why->add_option("--cwd", where, "Where pi would be started; without it here")->type_name("DIRECTORY");
    why->add_flag("--json", why_options.json, "Print JSON");

    auto *schema = app.add_subcommand("schema", "Print a JSON Schema of the policy, for editors");

    std::vector<std::string> shell_arguments;
    auto *shell = app.add_subcommand("shell", "Start a shell in the agent's place, in this directory: what it sees, the agent sees");
    shell->add_option("ARGUMENT", shell_arguments, "Arguments of bash, after --: shell -- -c 'ls /'");

    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForAllHelp &) {
        return [help = app.help("", CLI::AppFormatMode::All)] { std::cout << help; };
    } catch (const CLI::CallForHelp &) {
        return [help = app.help()] { std::cout << help; };
    } catch (const CLI::CallForVersion &version) {
        return [text = std::string(version.what())] { std::cout << text << '\n'; };
    } catch (const CLI::ParseError &error) {
        throw Failure(ExitStatus::usage, std::string(error.what()) + "; see 'pi-agentctl --help'");
    }
    if (check->parsed()) return [draft = given(file_option, file), check_json] { run_check(draft, check_json, std::cout, std::cerr); };
    if (apply->parsed()) return [dry_run, no_canary] { run_apply(dry_run, !no_canary, std::cout, std::cerr); };
    doctor_options.user = given(patient_option, patient);
    if (doctor->parsed()) return [doctor_options] { run_doctor(doctor_options, std::cout); };
    why_options.user = given(whose_option, whose);
    why_options.directory = given(where_option, where);
    if (why->parsed()) return [why_options] { run_why(why_options, std::cout); };
    if (schema->parsed()) return [] { run_schema(std::cout); };
    if (shell->parsed()) return [shell_arguments] { become_shell(shell_arguments); };
    if (!explain->parsed())
        throw Failure(ExitStatus::usage, "no command given: check, apply, doctor, explain, why, schema or shell; see 'pi-agentctl --help'");
    return [name = given(user_option, user), cwd = given(directory_option, directory), json] { run_explain(name, cwd, json, std::cout); };
}

// Each line of `text` after the name of the program.
void print_failure(const std::string &text)
{
    std::cerr << prefix_lines("pi-agentctl: ", text);
}

} // namespace

int main(int argc, char **argv)
{
    try {
        parse_command_line(argc, argv)();
        std::cout.flush();
        if (!std::cout) throw Failure(ExitStatus::system_failure, "cannot write to standard output");
        return 0;
    } catch (const PolicyError &error) {
        std::cout.flush();
        std::cerr << show_problems(error.diagnostics(), "pi-agentctl: ", read_again);
        return static_cast<int>(error.status());
    } catch (const Failure &failure) {
        std::cout.flush();
        print_failure(failure.what());
        return static_cast<int>(failure.status());
    } catch (const std::exception &failure) {
        print_failure(std::string("a bug of pi-agent: ") + failure.what());
        return static_cast<int>(ExitStatus::internal);
    }
}
