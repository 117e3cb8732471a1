// pi-agentctl: the administrators' tool. Reads its command line and runs one command.
#include "admin/cli/commands.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/text/terminal.hpp"

#include <fmt/ranges.h>
#include <iostream>

namespace {

using namespace pi_agent;

constexpr const char *footer = "Exit status:\n"
                               "   0  done\n"
                               "   1  no such thing exists (no session to end, no entry, no earlier policy), or the answer was no\n"
                               "  64  the command line is wrong\n"
                               "  69  the host has faults, or the sandbox does not hold\n"
                               "  70  a bug in pi-agent\n"
                               "  71  the operating system refused something\n"
                               "  75  another command or a session is in the way\n"
                               "  77  only root can run the command, or the policy does not let that user start there\n"
                               "  78  the policy has errors, or the host does not fit it";

std::vector<std::string> command_names(const CLI::App &app)
{
    std::vector<std::string> names;
    for (const auto *command : commands_below(app))
        names.push_back(command->get_name());
    return names;
}

// What was wrong, and which help answers it: the command's or, if there is no such command, the general one.
std::string usage_problem(const CLI::App &app, const CLI::ParseError &error, std::string_view first)
{
    const auto chosen = app.get_subcommands();
    if (!chosen.empty()) return fmt::format("{}; see: pi-agentctl help {}", error.what(), chosen.front()->get_name());
    if (first.empty() || first.front() == '-') return std::string(error.what()) + "; see: pi-agentctl help";
    const auto names = command_names(app);
    const auto hint = did_you_mean(first, {names.begin(), names.end()});
    return fmt::format("unknown command {}{}", quote(first), hint.empty() ? "; see: pi-agentctl help" : hint);
}

// The command looks at options of `app` when it runs.
Action parse_command_line(CLI::App &app, int argc, char **argv)
{
    app.set_version_flag("--version", std::string("pi-agentctl ") + build::version);
    app.set_help_all_flag("--help-all", "Print the help of every command and exit");
    app.require_subcommand(0, 1); // none at all is our message: CLI11 would report a misspelt command as a missing one
    const auto where = std::string("The policy is ") + policy_path + ". A message ends with a code: pi-agentctl explain CODE explains it.";
    app.footer(where);
    Action chosen;
    add_commands(app, chosen);
    const std::string_view first = argc > 1 ? argv[1] : "";
    const std::string_view second = argc > 2 ? argv[2] : "";
    if (first == "complete") // not of app: it says what the others are
        return [text = complete(app, {argv + 2, argv + argc})] { std::cout << text; };
    if (first == "shell" && argc > 2 && second != "--help" && second != "-h") {
        std::vector<std::string> words(argv + 2, argv + argc);
        if (words.front() == "--") words.erase(words.begin());
        return [words] { become_shell(words); };
    }
    // As other tools have it: help, and help COMMAND.
    std::vector<const char *> words(argv, argv + argc);
    if (first == "help") {
        words.erase(words.begin() + 1);
        words.push_back("--help");
    }
    try {
        app.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::CallForAllHelp &) {
        app.footer(where + "\n\n" + footer);
        return [help = app.help("", CLI::AppFormatMode::All)] { std::cout << help; };
    } catch (const CLI::CallForHelp &) {
        return [help = app.help()] { std::cout << help; };
    } catch (const CLI::CallForVersion &version) {
        return [text = std::string(version.what())] { std::cout << text << '\n'; };
    } catch (const CLI::ParseError &error) {
        throw Failure(FailureKind::command_line, usage_problem(app, error, first));
    }
    if (chosen) return chosen;
    throw Failure(FailureKind::command_line,
                  fmt::format("no command given: use one of {}; see: pi-agentctl help", fmt::join(command_names(app), ", ")));
}

} // namespace

int main(int argc, char **argv)
{
    // `pi --pi-agent-explain` becomes this program, and what it says is pi's.
    const char *prefix = argc > 0 && std::string_view(argv[0]) == "pi" ? "pi: " : "pi-agentctl: ";
    // Each line of `text` after the name of the program, and then where to read on.
    const auto say = [prefix](const std::string &text) {
        std::cout.flush();
        std::cerr << prefix_lines(prefix, text);
    };
    const auto fail = [&say](const Failure &failure, const std::string &shown) {
        const auto pointer = pointer_to(failure.kind(), failure.status());
        say(shown + (shown.empty() || pointer.empty() ? "" : "\n") + pointer);
        return static_cast<int>(failure.status());
    };
    try {
        CLI::App app("Administers pi-agent: writes and checks its policy, makes the host follow it, and looks after sessions and state.",
                     "pi-agentctl");
        parse_command_line(app, argc, argv)();
        std::cout.flush();
        if (!std::cout) throw Failure(ExitStatus::system_failure, "cannot write to standard output");
        return 0;
    } catch (const Nothing &nothing) {
        say(nothing.what());
        return nothing_status;
    } catch (const PolicyError &error) {
        std::cout.flush();
        std::cerr << show_problems(error.diagnostics(), prefix, read_again);
        return fail(error, "");
    } catch (const Failure &failure) {
        return fail(failure, failure.what());
    } catch (const std::exception &failure) {
        return fail(Failure(ExitStatus::internal, ""), std::string("a bug of pi-agent: ") + failure.what());
    }
}
