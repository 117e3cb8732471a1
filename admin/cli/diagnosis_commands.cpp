// The command line of the commands that look, and write down what they see: doctor, explain, why, shell, version, render.
#include "admin/cli/commands.hpp"
#include "admin/diagnose/doctor.hpp"
#include "admin/diagnose/explain.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/diagnose/why.hpp"
#include "admin/render/render.hpp"
#include "admin/sessions/sessions.hpp"

#include <fmt/ranges.h>
#include <iostream>

namespace pi_agent {

namespace {

struct DiagnosisOptions {
    DoctorOptions doctor;
    WhyOptions why;
    RenderOptions render;
    std::optional<std::string> user, directory;
    bool json = false;
    std::vector<std::string> arguments;
};

void add_cwd(CLI::App *command, std::optional<std::string> &directory, const char *help)
{
    add_optional(command, "--cwd", directory, help)->type_name("DIRECTORY");
}

void add_render(CLI::App &app, Deed &chosen, const std::shared_ptr<DiagnosisOptions> &all)
{
    auto &options = all->render;
    options.image = default_image();
    auto *render =
        add_command(app, chosen, "render", "Write what a start of pi would be given for an engine that exists: a container, a unit, a job",
                    [all] { run_render(all->render, std::cout); });
    render->add_option("--target", options.target, fmt::format("What to write: {}", fmt::join(render_targets(), ", ")))
        ->type_name("TARGET")
        ->required();
    add_user(render, options.user, "Whose access; all targets but seccomp want it");
    add_cwd(render, options.directory, "Where pi would be started; all targets but seccomp want it");
    render->add_option("--image", options.image, "The image of a container")->type_name("IMAGE")->capture_default_str();
    render->add_option("--volume", options.volume, "Where a cluster has the workspaces: SERVER:/EXPORT of NFS, or efs:fs-ID:fsap-ID")
        ->type_name("VOLUME");
    render->add_option("ARGUMENT", options.arguments, "Arguments of the agent, after --");
}

} // namespace

void add_diagnosis_commands(CLI::App &app, Deed &chosen)
{
    const auto all = std::make_shared<DiagnosisOptions>();
    auto *doctor =
        add_command(app, chosen, "doctor", "Look for every way around pi and every reason why it would not start, and try the sandbox",
                    [all] { run_doctor(all->doctor, std::cout); });
    add_user(doctor, all->doctor.user, "Who tries the sandbox; without it the first user who has a root");
    doctor->add_flag("--attack", all->doctor.attack, "Print everything that the sandbox was tried with, and what came of it");
    add_json(doctor, all->doctor.json);

    auto *explain = add_command(app, chosen, "explain", "Explain what the policy grants to a user, and where",
                                [all] { run_explain(all->user, all->directory, all->json, std::cout); });
    add_user(explain, all->user, "Whose access; without it your own, and for root a list of everybody");
    add_cwd(explain, all->directory, "The directory to start pi in");
    add_json(explain, all->json);

    auto *why = add_command(app, chosen, "why", "Say whether the agent may read or write paths, by which rule, and which key changes it",
                            [all] { run_why(all->why, std::cout); });
    why->add_option("PATH", all->why.paths, "What to ask about; relative paths count from the directory")->required();
    add_user(why, all->why.user, "Whose agent; without it your own");
    add_cwd(why, all->why.directory, "Where pi would be started; without it here");
    add_json(why, all->why.json);

    // Only for help and completion: main.cpp takes the words, for options are bash's.
    auto *shell = add_command(app, chosen, "shell", "Start a shell in the agent's place, in this directory: what it sees, the agent sees",
                              [all] { become_shell(all->arguments); });
    shell->add_option("ARGUMENT", all->arguments, "Arguments of bash, options too: shell -c 'ls /'");

    auto *version = add_command(app, chosen, "version", "Print the versions of pi-agent, systemd, the kernel and, as root, the agent",
                                [all] { run_version(all->json, std::cout); });
    add_json(version, all->json);
    add_render(app, chosen, all);
}

} // namespace pi_agent
