// The commands of pi-agentctl that look, and write down what they see: doctor, explain, show, why, shell, version, metrics, render. And -v
// and -q.
#include "admin/apply/apply.hpp"

#include "admin/cli/commands.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/render/render.hpp"
#include "admin/sessions/sessions.hpp"

#include <fmt/ranges.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <iostream>
#include <streambuf>

namespace pi_agent {

// What is logged elsewhere is only for these options: no variable of the caller's switches it on.
void log_steps()
{
    // Not spdlog::stderr_logger_mt, which throws where there is one of that name: "state -v prune -v" comes here twice.
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("pi-agentctl", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
    spdlog::set_pattern("%n: %T.%e: %v");
    spdlog::set_level(spdlog::level::debug);
}

void be_quiet()
{
    // Takes everything and keeps nothing, so that a stream on it never fails.
    class Nowhere : public std::streambuf {
        int_type overflow(int_type byte) override { return traits_type::not_eof(byte); }
        std::streamsize xsputn(const char * /*bytes*/, std::streamsize count) override { return count; }
    };
    static Nowhere nowhere;
    std::cout.rdbuf(&nowhere);
}

namespace {

struct DiagnosisOptions {
    DoctorOptions doctor;
    WhyOptions why;
    RenderOptions render;
    MetricsOptions metrics;
    std::optional<std::string> user, directory, word;
    bool json = false;
    bool effective = false;
    std::vector<std::string> arguments;
};

void add_cwd(CLI::App *command, std::optional<std::string> &directory, const char *help)
{
    add_optional(command, "--cwd", directory, help)->type_name("DIRECTORY");
}

void explain_one(const std::string &word, std::ostream &out)
{
    const auto text = explain_word(word);
    if (!text)
        throw Failure(FailureKind::command_line, "nothing is called " + quote(word) +
                                                     "; name a code (E77-root), a fault of doctor (sudo-rule) or a key "
                                                     "of the policy (limits.memory), or none of them; see: pi-agentctl help explain");
    out << *text;
}

void add_render(CLI::App &app, Action &chosen, const std::shared_ptr<DiagnosisOptions> &all)
{
    auto &options = all->render;
    options.image = default_image();
    auto *render =
        add_command(app, chosen, "render", "Write what a start of pi would be given as a Job of Kubernetes, or the filter of system calls",
                    [all] { run_render(all->render, std::cout); });
    render->add_option("--target", options.target, "What to write: kubernetes, seccomp")->type_name("TARGET")->required();
    add_user(render, options.user, "Whose access; kubernetes wants it");
    add_cwd(render, options.directory, "Where pi would be started; kubernetes wants it");
    render->add_option("--image", options.image, "The image of a container")->type_name("IMAGE")->capture_default_str();
    render->add_option("--volume", options.volume, "Where a cluster has the workspaces: SERVER:/EXPORT of NFS, or efs:fs-ID:fsap-ID")
        ->type_name("VOLUME");
    render->add_option("ARGUMENT", options.arguments, "Arguments of the agent, after --");
}

} // namespace

void add_diagnosis_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<DiagnosisOptions>();
    auto *doctor =
        add_command(app, chosen, "doctor", "Look for every way around pi and every reason why it would not start, and try the sandbox",
                    [all] { run_doctor(all->doctor, std::cout); });
    add_user(doctor, all->doctor.user, "Who tries the sandbox; without it the first user who has a root");
    doctor->add_flag("--attack", all->doctor.attack, "Print everything that the sandbox was tried with, and what came of it");
    add_json(doctor, all->doctor.json);

    auto *explain =
        add_command(app, chosen, "explain", "Explain what the policy grants to a user, or what a code, a fault or a key means", [all] {
            if (all->word) return explain_one(*all->word, std::cout);
            run_explain(all->user, all->directory, all->json, std::cout);
        });
    auto *word =
        add_optional(explain, "WORD", all->word, "A code of a message (E77-root), a fault of doctor (sudo-rule), or a key (limits.memory)");
    add_user(explain, all->user, "Whose access; without it your own, and for root a list of everybody");
    add_cwd(explain, all->directory, "The directory to start pi in");
    add_json(explain, all->json);
    for (const auto *other : {"--user", "--cwd", "--json"})
        word->excludes(explain->get_option(other));

    auto *show = add_command(app, chosen, "show", "Print the values of the policy that hold for a user, and which level says each",
                             [all] { run_show(all->user, all->directory, all->json, std::cout); });
    show->add_flag("--effective", all->effective, "All levels together, which is what show prints anyway");
    add_user(show, all->user, "Whose; without it your own");
    add_optional(show, "--directory", all->directory, "As they hold in this directory: a root may say its own")->type_name("DIRECTORY");
    add_json(show, all->json);

    auto *why = add_command(app, chosen, "why",
                            "Say whether the agent may read or write paths, or reach hosts, by which rule, and which key changes it",
                            [all] { run_why(all->why, std::cout); });
    why->add_option("PATH", all->why.paths, "What to ask about: paths, which count from the directory, or HOST[:PORT]")->required();
    add_user(why, all->why.user, "Whose agent; without it your own");
    add_cwd(why, all->why.directory, "Where pi would be started; without it here");
    add_json(why, all->why.json);

    // Only for help and completion: main.cpp takes the words, because the options are bash's.
    auto *shell = add_command(app, chosen, "shell", "Start a shell in the agent's place, in this directory: what it sees, the agent sees",
                              [all] { become_shell(all->arguments); });
    shell->remove_option(shell->get_option("--verbose")); // -v is bash's
    shell->remove_option(shell->get_option("--quiet"));
    shell->add_option("ARGUMENT", all->arguments, "Arguments of bash, options too: shell -c 'ls /'");

    auto *version = add_command(app, chosen, "version", "Print the versions of pi-agent, systemd, the kernel and, as root, the agent",
                                [all] { run_version(all->json, std::cout); });
    add_json(version, all->json);
    auto *metrics = add_command(app, chosen, "metrics", "Print numbers for Prometheus: sessions, starts, refusals, ends and the policy",
                                [all] { run_metrics(all->metrics, std::cout, std::cerr); });
    add_optional(metrics, "--output", all->metrics.output, "A file that ends in .prom, for node_exporter; it is replaced in one step")
        ->type_name("FILE");
    metrics->add_option("--since", all->metrics.since, "How far back starts, refusals and ends count")
        ->type_name("TIME")
        ->capture_default_str();
    add_render(app, chosen, all);
}

} // namespace pi_agent
