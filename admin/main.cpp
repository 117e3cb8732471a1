// pi-agentctl: reads its command line and runs one command. The table of commands.toml has their options.
#include "admin/agents/agents.hpp"
#include "admin/apply/apply.hpp"
#include "admin/complete.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/render/render.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/state/state.hpp"
#include "admin/text/terminal.hpp"
#include "admin/undo/undo.hpp"
#include "common/base/terminal_text.hpp"

#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>

namespace pi_agent {

namespace {

// What the command line asks for. It throws Failure, or NothingToDo (admin/text/terminal.hpp).
struct Action {
    std::function<void()> run = {};
    bool is_for_programs = false; // what it prints is JSON, a file or a value: it stays as it is on a terminal, too
};

// --- The table, and how CLI11 gets it.

struct OptionRow {
    const char *name;           // as CLI11 has it: "-y,--yes"
    const char *type = nullptr; // the word for its value
    bool many = false;
    bool each = false;
    bool required = false;
    bool for_programs = false;
    const char *excludes = ""; // names of options before it, with spaces between them
    std::string standard = {};
    const char *help;
};

struct CommandRow {
    std::string name;          // "state prune" is below "state"
    bool for_programs = false; // what it prints, with and without options
    bool hidden = false;       // from help and completion
    const char *help;
    std::vector<OptionRow> options = {};
};

// A name that a command had before, and the words that are read instead.
struct FormerName {
    std::string_view name, now, told;
    const char *argument = nullptr; // which it could not do without
};

constexpr FormerName former_names[] = {
#include "admin/former_names.inc"
};

std::vector<CommandRow> command_rows()
{
    return {
#include "admin/commands.inc"
    };
}

// What a command line gives to the options of one command.
class Given {
public:
    [[nodiscard]] bool has(const std::string &name) const { return flags_.at(name); }
    [[nodiscard]] std::optional<std::string> text(const std::string &name) const { return texts_.at(name); }
    [[nodiscard]] std::string word(const std::string &name) const { return texts_.at(name).value_or(""); }
    [[nodiscard]] std::vector<std::string> words(const std::string &name) const { return lists_.at(name); }
    [[nodiscard]] std::optional<std::uint64_t> time(const std::string &name) const
    {
        return text(name) ? std::optional(parse_time(word(name), now_microseconds())) : std::nullopt;
    }

    void add(CLI::App *command, const OptionRow &row)
    {
        const std::string names = row.name;
        const auto key = names.substr(names.rfind(',') + 1); // npos + 1 is 0
        CLI::Option *option = nullptr;
        if (names.front() == '-' && row.type == nullptr) {
            option = command->add_flag(names, flags_[key], row.help);
        } else if (row.many) {
            option = command->add_option(names, lists_[key], row.help);
        } else { // CLI11's own for an optional value would take an empty value for none
            option = command->add_option_function<std::string>(
                names, [&value = texts_[key]](const std::string &given) { value = given; }, row.help);
            if (!row.standard.empty()) option->default_str(*(texts_[key] = row.standard));
        }
        if (row.type != nullptr) option->type_name(row.type);
        if (row.each) option->allow_extra_args(false);
        if (row.required) option->required();
        for (const auto other : split(row.excludes, ' '))
            option->excludes(command->get_option(std::string(other)));
    }

private:
    std::map<std::string, bool> flags_;
    std::map<std::string, std::optional<std::string>> texts_;
    std::map<std::string, std::vector<std::string>> lists_;
};

// --- What each command does.

using Run = void (*)(const Given &it);

ApplyOptions applying(const Given &it)
{
    return {it.has("--dry-run"), !it.has("--no-canary")};
}

void stop(const Given &it)
{
    if (!it.text("SESSION") && !it.text("--user") && !it.has("--all"))
        throw Failure(ExitStatus::usage,
                      "name a session by its id, or use --user NAME or --all; 'pi-agentctl sessions' lists yours, and with sudo all");
    run_stop({it.text("SESSION"), it.text("--user"), it.text("--message")}, std::cout);
}

void show_history(const Given &it)
{
    if (const auto session = it.text("SESSION")) return run_logs(*session, it.has("--follow"), std::cout, std::cerr);
    if (it.has("--follow")) throw Failure(ExitStatus::usage, "--follow needs a session: pi-agentctl history --follow SESSION");
    HistoryQuery query{it.text("--user"), {}, it.time("--since"), it.time("--until"), it.has("--failed"), it.has("--probes")};
    if (const auto project = it.text("--project"))
        query.project = without_trailing_slashes(std::filesystem::absolute(*project).lexically_normal());
    run_history(query, it.has("--json"), std::cout, std::cerr);
}

void explain_what_is_asked(const Given &it)
{
    const auto word = it.text("WORD");
    if (!word) return run_explain({it.text("--user"), it.text("--cwd"), it.has("--all"), it.has("--json")}, std::cout);
    const auto text = explain_word(*word);
    if (!text)
        throw Failure(FailureKind::command_line, "nothing is called " + quote(*word) +
                                                     "; name a code (E77-root), a fault of doctor (sudo-rule) or a key "
                                                     "of the policy (limits.memory), or none of them; see: pi-agentctl help explain");
    std::cout << *text;
}

const std::map<std::string, Run> runs = {
    {"init",
     [](const Given &it) {
         run_init({it.words("--user"), it.words("--root"), it.text("--network"), it.text("--key"), it.text("--env-file"),
                   it.text("--output"), it.has("--yes"), it.text("--via")},
                  std::cout, std::cerr);
     }},
    {"check",
     [](const Given &it) {
         const auto tree = it.text("--directory");
         const auto scope = tree ? CheckScope::tree : it.has("--policy-only") ? CheckScope::policy_only : CheckScope::host;
         run_check(tree ? tree : it.text("FILE"), scope, it.has("--json"), std::cout, std::cerr);
     }},
    {"edit", [](const Given &it) { run_edit(it.text("FILE"), std::cout, std::cerr); }},
    {"apply",
     [](const Given &it) {
         if (it.has("--show-rule")) return run_sudoers(std::cout, std::cerr);
         if (it.has("--package-files"))
             return copy_package_files(claim_root("apply --package-files", "reads what dpkg knows, so only root can run it"));
         run_apply(applying(it), std::cout, std::cerr);
     }},
    {"rollback", [](const Given &it) { run_rollback(it.has("--yes"), applying(it), std::cout, std::cerr); }},
    {"remove",
     [](const Given &it) {
         run_remove({it.has("--accounts"), it.has("--state"), it.has("--keep-hidden"), it.has("--yes"), it.has("--dry-run")}, std::cout);
     }},
    {"user add",
     [](const Given &it) {
         run_user_add(it.word("NAME"), it.words("--root"), {false, it.has("--dry-run")}, std::cout, std::cerr);
     }},
    {"user remove",
     [](const Given &it) {
         run_user_remove(it.word("NAME"), {it.has("--yes"), it.has("--dry-run")}, std::cout, std::cerr);
     }},
    {"user prune",
     [](const Given &it) {
         run_prune({it.has("--yes"), it.has("--dry-run"), it.has("--json"), it.words("--gone")}, std::cout);
     }},
    {"set",
     [](const Given &it) {
         run_set(it.word("KEY"), it.word("VALUE"), {false, it.has("--dry-run")}, std::cout, std::cerr);
     }},
    {"allow",
     [](const Given &it) {
         run_allow(it.words("HOST"), it.text("--user"), {false, it.has("--dry-run")}, std::cout, std::cerr);
     }},
    {"agent install",
     [](const Given &it) {
         run_install_agent({it.word("AGENT"), it.word("--registry")}, std::cout);
     }},
    {"agent list", [](const Given &it) { run_agent_list(it.has("--json"), std::cout); }},
    {"agent upgrade",
     [](const Given &it) {
         run_install_agent({it.word("AGENT"), it.word("--registry"), true}, std::cout);
     }},
    {"agent rollback", [](const Given &it) { run_agent_rollback(it.word("AGENT"), it.has("--yes"), std::cout); }},
    {"agent prune", [](const Given &it) { run_agent_prune(it.has("--yes"), std::cout); }},
    {"sessions", [](const Given &it) { run_sessions(it.text("--user"), it.has("--json"), std::cout); }},
    {"stop", stop},
    {"drain",
     [](const Given &it) {
         run_drain({it.has("--off"), it.has("--wait"), it.text("--message")}, std::cout);
     }},
    {"history", show_history},
    {"changes", [](const Given &it) { run_changes(it.text("SESSION"), it.has("--json"), std::cout); }},
    {"diff",
     [](const Given &it) {
         run_diff({it.words("PATH"), it.text("--session"), it.text("--change")}, std::cout);
     }},
    {"undo",
     [](const Given &it) {
         run_undo({it.words("PATH"), it.text("--session"), it.has("--yes"), it.has("--dry-run")}, std::cout, std::cerr);
     }},
    {"review", [](const Given &it) { run_review(it.text("SESSION"), std::cout, std::cerr); }},
    {"export", [](const Given &it) { become_export(it.text("SESSION")); }},
    {"denials",
     [](const Given &it) {
         run_denials({it.text("SESSION"), it.text("--user"), it.time("--since"), it.has("--follow"), it.has("--probes")}, it.has("--json"),
                     it.has("--summary"), std::cout, std::cerr);
     }},
    {"state", [](const Given &it) { run_state(it.text("--user"), it.has("--json"), std::cout); }},
    {"state prune", [](const Given &it) { run_state_prune(it.text("--user"), it.has("--yes"), std::cout); }},
    {"state reset", [](const Given &it) { run_state_reset(it.word("--user"), it.has("--yes"), std::cout); }},
    {"state move", [](const Given &it) { run_state_move(it.has("--yes"), std::cout); }},
    {"state export", [](const Given &it) { run_state_export(it.word("--user"), it.word("DIRECTORY"), std::cout); }},
    {"doctor",
     [](const Given &it) {
         run_doctor({it.text("--user"), it.has("--attack"), it.has("--json")}, std::cout);
     }},
    {"explain", explain_what_is_asked},
    {"show",
     [](const Given &it) {
         if (it.has("--schema")) return run_schema(std::cout);
         if (const auto key = it.text("KEY")) return run_get(*key, it.has("--json"), std::cout);
         run_show(it.text("--user"), it.text("--directory"), it.has("--json"), std::cout);
     }},
    {"why",
     [](const Given &it) {
         run_why({it.words("PATH"), it.text("--user"), it.text("--cwd"), it.has("--json")}, std::cout);
     }},
    {"shell", [](const Given &it) { become_shell(it.words("ARGUMENT")); }},
    {"version", [](const Given &it) { run_version(it.has("--json"), std::cout); }},
    {"metrics",
     [](const Given &it) {
         run_metrics({it.text("--output"), it.word("--since")}, std::cout, std::cerr);
     }},
    {"render",
     [](const Given &it) {
         run_render(
             {it.word("--target"), it.text("--user"), it.text("--cwd"), it.word("--image"), it.word("--volume"), it.words("ARGUMENT")},
             std::cout);
     }},
};

void add_command(CLI::App &app, Action &chosen, const CommandRow &row)
{
    const auto space = row.name.find(' ');
    auto &above = space == std::string::npos ? app : *app.get_subcommand(row.name.substr(0, space));
    auto *command = above.add_subcommand(row.name.substr(space + 1), row.help); // npos + 1 is 0
    if (row.hidden) command->group("");
    const auto run = runs.find(row.name);
    if (&above != &app) above.require_subcommand(runs.contains(above.get_name()) ? 0 : 1, 1);
    if (run == runs.end()) return;
    const auto given = std::make_shared<Given>();
    command->callback([command, &app, &above, &chosen, given, row, act = run->second] {
        if (!command->get_subcommands().empty()) return;
        // A command below another would forget what is given to that one: "state --user alice prune" prunes everybody's.
        if (&above != &app) {
            for (const auto *option : above.get_options())
                if (option->count() > 0)
                    throw Failure(ExitStatus::usage, fmt::format("write {0} after '{2}': pi-agentctl {1} {2} {0}", option->get_name(),
                                                                 above.get_name(), command->get_name()));
        }
        const auto wants = [&](const char *option) {
            return command->get_option_no_throw(option) != nullptr && command->count(option) > 0;
        };
        const bool writes_file = wants("--output") && given->word("--output") == "-";
        const bool is_for_programs = row.for_programs || std::ranges::any_of(row.options, [&](const OptionRow &option) {
                                         return option.for_programs && wants(option.name);
                                     });
        chosen = {[given, act] { act(*given); }, wants("--json") || writes_file || is_for_programs};
    });
    if (row.name != "shell") {
        command->add_flag_callback("-q,--quiet", be_quiet, "Print nothing on standard output: the exit status says it");
        command->add_flag_callback("-v,--verbose", log_steps,
                                   "Say on standard error what is started, written, removed and locked, and when");
    }
    for (const auto &option : row.options)
        given->add(command, option);
}

// --- The command line itself.

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
    return mapped(commands_below(app), [&](const auto *command) { return command->get_name(); });
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

// Reads a former name as the words that it stands for today, and says so. Returns the argument that these words still need.
const CLI::Option *replace_former_name(CLI::App &app, std::vector<std::string> &words)
{
    const auto *former = std::ranges::find(former_names, std::string_view(words.empty() ? "" : words.front()), &FormerName::name);
    if (former == std::end(former_names)) return nullptr;
    std::cerr << fmt::format("pi-agentctl: '{}' is now '{}'\n", former->name, former->told);
    const auto now = split(former->now, ' ');
    words.erase(words.begin());
    words.insert(words.begin(), now.begin(), now.end());
    return former->argument == nullptr ? nullptr : app.get_subcommand(words.front())->get_option(former->argument);
}

// The command looks at options of `app` when it runs.
Action parse_command_line(CLI::App &app, int argc, char **argv)
{
    app.add_flag("--version")
        ->description("Print the versions of pi-agent, systemd, the kernel and, as root, the agent; --version --json for programs");
    app.set_help_all_flag("--help-all", "Print the help of every command and exit");
    app.require_subcommand(0, 1); // none at all is our message: CLI11 would report a misspelt command as a missing one
    const auto where = std::string("The policy is ") + policy_path + ". A message ends with a code: pi-agentctl explain CODE explains it.";
    app.footer(where);
    Action chosen;
    for (const auto &row : command_rows())
        add_command(app, chosen, row);
    const std::string_view first = argc > 1 ? argv[1] : "", second = argc > 2 ? argv[2] : "";
    if (first == "complete") // not of app: it says what the others are
        return {[text = complete(app, {argv + 2, argv + argc})] { std::cout << text; }, true};
    if (first == "shell" && argc > 2 && second != "--help" && second != "-h") {
        std::vector<std::string> words(argv + 2, argv + argc);
        if (words.front() == "--") words.erase(words.begin());
        return {[words] { become_shell(words); }};
    }
    // As other tools have it: help, and help COMMAND.
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (first == "help") {
        words.erase(words.begin());
        words.emplace_back("--help");
    }
    const auto *needed = replace_former_name(app, words);
    if (!words.empty() && words.front() == "--version") words.front() = "version";
    std::ranges::reverse(words); // as CLI11 wants them
    try {
        app.parse(words);
        if (needed != nullptr && needed->count() == 0) throw CLI::RequiredError(needed->get_name());
    } catch (const CLI::CallForAllHelp &) {
        app.footer(where + "\n\n" + footer);
        return {[help = app.help("", CLI::AppFormatMode::All)] { std::cout << help; }};
    } catch (const CLI::CallForHelp &) {
        return {[help = app.help()] { std::cout << help; }};
    } catch (const CLI::ParseError &error) {
        throw Failure(FailureKind::command_line, usage_problem(app, error, first));
    }
    if (chosen.run) return chosen;
    throw Failure(FailureKind::command_line,
                  fmt::format("no command given: use one of {}; see: pi-agentctl help", fmt::join(command_names(app), ", ")));
}

} // namespace

} // namespace pi_agent

int main(int argc, char **argv)
{
    using namespace pi_agent;
    const FittedStream problems(std::cerr, STDERR_FILENO);
    // `pi --pi-agent-explain` becomes this program, and what it says is pi's.
    const std::string name = argc > 0 && std::string_view(argv[0]) == "pi" ? "pi:" : "pi-agentctl:";
    // Each line of `text` after the name of the program, and then where to read on.
    const auto say = [](const std::string &prefix, const std::string &text) {
        std::cout.flush();
        std::cerr << prefix_lines(prefix, text);
    };
    const std::string failed = as_failure(name, problems.terminal()) + " ";
    const auto fail = [&](const Failure &failure, const std::string &shown) {
        const auto pointer = pointer_to(failure.kind(), failure.status());
        say(failed, shown + (shown.empty() || pointer.empty() ? "" : "\n") + pointer);
        return static_cast<int>(failure.status());
    };
    remember_accounts();
    try {
        CLI::App app("Administers pi-agent: writes and checks its policy, makes the host follow it, and looks after sessions and state.",
                     "pi-agentctl");
        const auto action = parse_command_line(app, argc, argv);
        FittedStream answer(std::cout, STDOUT_FILENO);
        if (action.is_for_programs) answer.stop();
        action.run();
        if (!std::cout.flush()) throw Failure(ExitStatus::system_failure, "cannot write to standard output");
        return 0;
    } catch (const NothingToDo &nothing) {
        say(name + " ", nothing.what());
        return nothing_status;
    } catch (const PolicyError &error) {
        std::cout.flush();
        std::cerr << show_problems(error.diagnostics(), failed, read_again);
        return fail(error, "");
    } catch (const Failure &failure) {
        return fail(failure, failure.what());
    } catch (const std::exception &failure) {
        return fail(Failure(ExitStatus::internal, ""), std::string("a bug of pi-agent: ") + failure.what());
    }
}
