// The commands of pi-agentctl: their options, by the table of commands.toml, what each does, and proposals for what is typed.
#include "admin/cli/commands.hpp"

#include "admin/agents/agents.hpp"
#include "admin/apply/apply.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/render/render.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/state/state.hpp"
#include "admin/text/terminal.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <iostream>
#include <streambuf>

namespace pi_agent {

namespace {

// --- The table, and how CLI11 gets it.

struct OptionRow {
    const char *name;           // as CLI11 has it: "-y,--yes"
    const char *type = nullptr; // the word for its value
    bool many = false;
    bool each = false;
    bool required = false;
    const char *excludes = ""; // names of options before it, with spaces between them
    std::string standard = {};
    const char *help;
};

struct CommandRow {
    std::string name; // "state prune" is below "state"
    const char *help;
    std::vector<OptionRow> options = {};
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
        const auto said = text(name);
        return said ? std::optional(parse_time(*said, now_microseconds())) : std::nullopt;
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
    HistoryQuery query{it.text("--user"), {}, it.time("--since"), it.time("--until"), it.has("--failed"), it.has("--probes")};
    if (const auto project = it.text("--project"))
        query.project = without_trailing_slashes(std::filesystem::absolute(*project).lexically_normal());
    run_history(query, it.has("--json"), std::cout, std::cerr);
}

void explain_what_is_asked(const Given &it)
{
    const auto word = it.text("WORD");
    if (!word) return run_explain(it.text("--user"), it.text("--cwd"), it.has("--json"), std::cout);
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
                   it.text("--output"), it.has("--yes")},
                  std::cout, std::cerr);
     }},
    {"check",
     [](const Given &it) {
         run_check(it.text("FILE"), it.has("--policy-only") ? CheckScope::policy_only : CheckScope::host, it.has("--json"), std::cout,
                   std::cerr);
     }},
    {"schema", [](const Given & /*it*/) { run_schema(std::cout); }},
    {"edit", [](const Given &it) { run_edit(it.text("FILE"), std::cout, std::cerr); }},
    {"apply", [](const Given &it) { run_apply(applying(it), std::cout, std::cerr); }},
    {"rollback", [](const Given &it) { run_rollback(it.has("--yes"), applying(it), std::cout, std::cerr); }},
    {"sudoers", [](const Given & /*it*/) { run_sudoers(std::cout, std::cerr); }},
    {"remove",
     [](const Given &it) {
         run_remove({it.has("--accounts"), it.has("--state"), it.has("--keep-hidden"), it.has("--yes"), it.has("--dry-run")}, std::cout);
     }},
    {"prune",
     [](const Given &it) {
         run_prune({it.has("--yes"), it.has("--dry-run"), it.has("--json"), it.words("--gone")}, std::cout);
     }},
    {"user add",
     [](const Given &it) {
         run_user_add(it.word("NAME"), it.words("--root"), {false, it.has("--dry-run")}, std::cout, std::cerr);
     }},
    {"user remove",
     [](const Given &it) {
         run_user_remove(it.word("NAME"), {it.has("--yes"), it.has("--dry-run")}, std::cout, std::cerr);
     }},
    {"set",
     [](const Given &it) {
         run_set(it.word("KEY"), it.word("VALUE"), {false, it.has("--dry-run")}, std::cout, std::cerr);
     }},
    {"get", [](const Given &it) { run_get(it.word("KEY"), it.has("--json"), std::cout); }},
    {"install-agent",
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
    {"logs", [](const Given &it) { run_logs(it.word("SESSION"), it.has("--follow"), std::cout, std::cerr); }},
    {"history", show_history},
    {"denials",
     [](const Given &it) {
         run_denials({it.text("SESSION"), it.text("--user"), it.time("--since"), it.has("--follow")}, it.has("--json"), std::cout,
                     std::cerr);
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
    {"show", [](const Given &it) { run_show(it.text("--user"), it.text("--directory"), it.has("--json"), std::cout); }},
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

// What is logged elsewhere is only for -v: no variable of the caller's switches it on.
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

// A command below another would forget what is given to that one: "state --user alice prune" prunes everybody's.
void require_no_options(const CLI::App &above, const std::string &name)
{
    for (const auto *option : above.get_options())
        if (option->count() > 0)
            throw Failure(ExitStatus::usage,
                          fmt::format("write {0} after '{2}': pi-agentctl {1} {2} {0}", option->get_name(), above.get_name(), name));
}

void add_command(CLI::App &app, Action &chosen, const CommandRow &row)
{
    const auto space = row.name.find(' ');
    auto &above = space == std::string::npos ? app : *app.get_subcommand(row.name.substr(0, space));
    auto *command = above.add_subcommand(row.name.substr(space + 1), row.help); // npos + 1 is 0
    const auto run = runs.find(row.name);
    if (&above != &app) above.require_subcommand(runs.contains(above.get_name()) ? 0 : 1, 1);
    if (run == runs.end()) return;
    const auto given = std::make_shared<Given>();
    command->callback([command, &app, &above, &chosen, given, act = run->second] {
        if (!command->get_subcommands().empty()) return;
        if (&above != &app) require_no_options(above, command->get_name());
        chosen = [given, act] { act(*given); };
    });
    if (row.name != "shell") {
        command->add_flag_callback("-q,--quiet", be_quiet, "Print nothing on standard output: the exit status says it");
        command->add_flag_callback("-v,--verbose", log_steps,
                                   "Say on standard error what is started, written, removed and locked, and when");
    }
    for (const auto &option : row.options)
        given->add(command, option);
}

// --- Proposals for the word at the cursor in a command line of pi-agentctl, found by walking the same commands and options that parse it.
// Of values it knows the keys of the policy.

struct Proposal {
    std::string word;
    std::string meaning;
};
using Proposals = std::vector<Proposal>;

// Those of one user with the name that `begun` has: "users.alice.roots".
Proposals keys_of_policy(const std::string &begun)
{
    constexpr std::string_view of_user = "users.*.";
    const std::size_t end = begun.starts_with("users.") ? begun.find('.', of_user.find('*')) : std::string::npos;
    Proposals proposals;
    for (const auto &key : policy_keys()) {
        std::string path(key.path);
        if (end != std::string::npos && path.starts_with(of_user)) path.replace(0, of_user.size() - 1, begun, 0, end);
        if (path.find('*') == std::string::npos) proposals.push_back({path, "key"});
    }
    return proposals;
}

const CLI::App *command_called(const CLI::App &app, const std::string &name)
{
    const auto found = app.get_subcommands([&name](const CLI::App *command) { return command->get_name() == name; });
    return found.empty() ? nullptr : found.front();
}

// Where in the tree of commands a command line is.
struct Place {
    const CLI::App *command = nullptr;
    bool awaits_value = false;   // of the option before
    std::size_t positionals = 0; // words that were neither command nor option

    void take(const std::string &word)
    {
        if (word == "=") return; // bash takes --user=alice apart
        if (awaits_value) {
            awaits_value = false;
        } else if (word.size() > 1 && word[0] == '-') {
            const auto *option = command->get_option_no_throw(word);
            awaits_value = option != nullptr && option->get_items_expected_max() > 0;
        } else if (const auto *below = positionals == 0 ? command_called(*command, word) : nullptr; below != nullptr) {
            command = below;
        } else {
            ++positionals;
        }
    }

    [[nodiscard]] Proposals next(const std::string &begun) const
    {
        if (awaits_value) return {}; // the shell has its own completion of paths
        if (begun[0] == '-') {
            Proposals proposals;
            for (const auto *option : command->get_options())
                for (const auto &name : option->get_lnames())
                    proposals.push_back({"--" + name, option->get_description()});
            return proposals;
        }
        if (positionals > 0) return {};
        // Whether its first word is one, by the word that stands for it in the help.
        const auto all = command->get_options([](const CLI::Option *option) { return option->get_positional(); });
        Proposals proposals = (!all.empty() && (all.front()->get_name(true) == "KEY" || all.front()->get_name(true) == "WORD"))
                                  ? keys_of_policy(begun)
                                  : Proposals{};
        for (const auto *below : commands_below(*command))
            proposals.push_back({below->get_name(), below->get_description()});
        return proposals;
    }
};

} // namespace

void add_commands(CLI::App &app, Action &chosen)
{
    for (const auto &row : command_rows())
        add_command(app, chosen, row);
}

std::string complete(const CLI::App &app, std::vector<std::string> words)
{
    std::string begun;
    if (!words.empty()) {
        begun = words.back() == "=" ? std::string() : words.back();
        words.pop_back();
    }
    Place place{&app};
    for (const auto &word : words)
        place.take(word);
    std::string text;
    for (const auto &[word, meaning] : place.next(begun))
        if (word.starts_with(begun)) text += word + '\t' + meaning + '\n';
    return text;
}

} // namespace pi_agent
