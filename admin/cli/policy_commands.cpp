// The command line of the commands about the policy: check, schema, init, edit, apply, rollback, sudoers, remove.
#include "admin/apply/apply.hpp"
#include "admin/cli/commands.hpp"
#include "admin/diagnose/check.hpp"

#include <iostream>

namespace pi_agent {

namespace {

struct PolicyOptions {
    std::string file;
    bool dry_run = false, no_canary = false, json = false, policy_only = false;
};

constexpr const char *no_canary_help = "Do not try the sandbox: where no session can run yet, as in an image that is being built";

void add_check(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<PolicyOptions>();
    auto *check = app.add_subcommand("check", "Check the policy and whether this host fits it; as root, the roots of every user too");
    const auto *file = check->add_option("FILE", all->file, "A draft to check instead of the installed policy, alone and without policy.d");
    check->add_flag("--policy-only", all->policy_only,
                    "The policy alone, not whether this host fits it: where a system is built for another");
    check->add_flag("--json", all->json, "Print JSON");
    on(check, chosen, [all, file] {
        run_check(given(file, all->file), all->policy_only ? CheckScope::policy_only : CheckScope::host, all->json, std::cout, std::cerr);
    });
}

void add_schema(CLI::App &app, Action &chosen)
{
    auto *schema = app.add_subcommand("schema", "Print a JSON Schema of the policy, for editors");
    on(schema, chosen, [] { run_schema(std::cout); });
}

void add_apply(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<PolicyOptions>();
    auto *apply = app.add_subcommand("apply", "Make the host follow the policy: accounts, directories, the agent's program, the sudo rule");
    apply->add_flag("--dry-run", all->dry_run, "Say what would change, with the lines of files, and change nothing");
    apply->add_flag("--no-canary", all->no_canary, no_canary_help);
    on(apply, chosen, [all] { run_apply({all->dry_run, !all->no_canary}, std::cout, std::cerr); });
}

void add_rollback(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<PolicyOptions>();
    const auto yes = std::make_shared<bool>(false);
    auto *rollback = app.add_subcommand("rollback", "Put the policy back that was applied before, and apply it");
    rollback->add_flag("--yes", *yes, "Do not ask");
    rollback->add_flag("--dry-run", all->dry_run, "Say what would change, with the lines of files, and change nothing");
    rollback->add_flag("--no-canary", all->no_canary, no_canary_help);
    on(rollback, chosen, [all, yes] { run_rollback(*yes, {all->dry_run, !all->no_canary}, std::cout, std::cerr); });
}

void add_init(CLI::App &app, Action &chosen)
{
    const auto order = std::make_shared<InitOrder>();
    const auto output = std::make_shared<std::string>();
    auto *init = app.add_subcommand("init", "Write a first policy from the users and directories of this host");
    init->add_option("--user", order->users, "Who may run the agent; without it everybody who keeps projects here")->type_name("NAME");
    init->add_option("--root", order->roots, "Where, for these users; without it ~/projects, ~/src and their like")->type_name("DIRECTORY");
    const auto *path = init->add_option("--output", *output, "Where to write it; - is standard output")->type_name("FILE");
    on(init, chosen, [order, output, path] {
        order->output = given(path, *output);
        run_init(*order, std::cout, std::cerr);
    });
}

void add_edit(CLI::App &app, Action &chosen)
{
    const auto name = std::make_shared<std::string>();
    auto *edit = app.add_subcommand("edit", "Change the policy with an editor; what is not valid never takes its place");
    const auto *file =
        edit->add_option("FILE", *name, "The file to change, of policy.d by its name there, or users.d/NAME.yaml; without it the main one");
    on(edit, chosen, [name, file] { run_edit(given(file, *name), std::cout, std::cerr); });
}

void add_remove(CLI::App &app, Action &chosen)
{
    const auto order = std::make_shared<RemoveOrder>();
    auto *remove = app.add_subcommand("remove", "Undo what apply did: the sudo rule, the hidden program");
    remove->add_flag("--state", order->state, "Remove what is kept for each user too: the agents' homes");
    remove->add_flag("--accounts", order->accounts, "With --state: remove the agents' accounts too");
    remove->add_flag("--keep-hidden", order->keep_hidden, "Leave the agent's program closed to everybody but root");
    remove->add_flag("--yes", order->yes, "Do not ask");
    remove->add_flag("--dry-run", order->dry_run, "Say what would change, and change nothing");
    on(remove, chosen, [order] { run_remove(*order, std::cout); });
}

void add_sudoers(CLI::App &app, Action &chosen)
{
    auto *sudoers = app.add_subcommand("sudoers", "Print the sudo rule that apply would install, after visudo has checked it");
    on(sudoers, chosen, [] { run_sudoers(std::cout, std::cerr); });
}

} // namespace

void add_policy_commands(CLI::App &app, Action &chosen)
{
    add_init(app, chosen);
    add_check(app, chosen);
    add_schema(app, chosen);
    add_edit(app, chosen);
    add_apply(app, chosen);
    add_rollback(app, chosen);
    add_sudoers(app, chosen);
    add_remove(app, chosen);
}

} // namespace pi_agent
