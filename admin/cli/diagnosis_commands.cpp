// The command line of the commands that look: doctor, explain, why, shell, version.
#include "admin/cli/commands.hpp"
#include "admin/diagnose/doctor.hpp"
#include "admin/diagnose/explain.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/diagnose/why.hpp"
#include "admin/sessions/sessions.hpp"

#include <iostream>
#include <vector>

namespace pi_agent {

namespace {

struct DiagnosisOptions {
    std::string user;
    std::string directory;
    bool json = false;
    std::vector<std::string> arguments;
};

void add_doctor(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<DiagnosisOptions>();
    const auto options = std::make_shared<DoctorOptions>();
    auto *doctor =
        app.add_subcommand("doctor", "Look for every way around pi and every reason why it would not start, and try the sandbox");
    const auto *user =
        doctor->add_option("--user", all->user, "Who tries the sandbox; without it the first user who has a root")->type_name("NAME");
    doctor->add_flag("--attack", options->attack, "Print everything that the sandbox was tried with, and what came of it");
    doctor->add_flag("--json", options->json, "Print JSON");
    on(doctor, chosen, [all, options, user] {
        options->user = given(user, all->user);
        run_doctor(*options, std::cout);
    });
}

void add_explain(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<DiagnosisOptions>();
    auto *explain = app.add_subcommand("explain", "Explain what the policy grants to a user, and where");
    const auto *user =
        explain->add_option("--user", all->user, "Whose access; without it your own, and for root a list of everybody")->type_name("NAME");
    const auto *directory = explain->add_option("--cwd", all->directory, "The directory to start pi in")->type_name("DIRECTORY");
    explain->add_flag("--json", all->json, "Print JSON");
    on(explain, chosen,
       [all, user, directory] { run_explain(given(user, all->user), given(directory, all->directory), all->json, std::cout); });
}

void add_why(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<DiagnosisOptions>();
    const auto options = std::make_shared<WhyOptions>();
    auto *why = app.add_subcommand("why", "Say whether the agent may read or write paths, by which rule, and which key changes it");
    why->add_option("PATH", options->paths, "What to ask about; relative paths count from the directory")->required();
    const auto *user = why->add_option("--user", all->user, "Whose agent; without it your own")->type_name("NAME");
    const auto *directory = why->add_option("--cwd", all->directory, "Where pi would be started; without it here")->type_name("DIRECTORY");
    why->add_flag("--json", options->json, "Print JSON");
    on(why, chosen, [all, options, user, directory] {
        options->user = given(user, all->user);
        options->directory = given(directory, all->directory);
        run_why(*options, std::cout);
    });
}

// Only for help and completion: main.cpp takes the words, for options are bash's.
void add_shell(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<DiagnosisOptions>();
    auto *shell = app.add_subcommand("shell", "Start a shell in the agent's place, in this directory: what it sees, the agent sees");
    shell->add_option("ARGUMENT", all->arguments, "Arguments of bash, options too: shell -c 'ls /'");
    on(shell, chosen, [all] { become_shell(all->arguments); });
}

void add_version(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<DiagnosisOptions>();
    auto *version = app.add_subcommand("version", "Print the versions of pi-agent, systemd, the kernel and, as root, the agent");
    version->add_flag("--json", all->json, "Print JSON");
    on(version, chosen, [all] { run_version(all->json, std::cout); });
}

} // namespace

void add_diagnosis_commands(CLI::App &app, Action &chosen)
{
    add_doctor(app, chosen);
    add_explain(app, chosen);
    add_why(app, chosen);
    add_shell(app, chosen);
    add_version(app, chosen);
}

} // namespace pi_agent
