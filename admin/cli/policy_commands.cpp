// The command line of the commands about the policy: check, schema, init, edit, apply, rollback, sudoers, remove.
#include "admin/apply/apply.hpp"
#include "admin/cli/commands.hpp"
#include "admin/diagnose/check.hpp"

#include <iostream>

namespace pi_agent {

namespace {

struct PolicyOptions {
    InitOrder init;
    RemoveOrder remove;
    std::optional<std::string> file;
    bool dry_run = false, no_canary = false, json = false, policy_only = false, yes = false;

    [[nodiscard]] ApplyOptions for_apply() const { return {dry_run, !no_canary}; }
};

void add_applying(CLI::App *command, PolicyOptions &options)
{
    command->add_flag("--dry-run", options.dry_run, "Say what would change, with the lines of files, and change nothing");
    command->add_flag("--no-canary", options.no_canary,
                      "Do not try the sandbox: where no session can run yet, as in an image that is being built");
}

} // namespace

void add_policy_commands(CLI::App &app, Deed &chosen)
{
    const auto all = std::make_shared<PolicyOptions>();
    auto *init = add_command(app, chosen, "init", "Write a first policy from the users and directories of this host",
                             [all] { run_init(all->init, std::cout, std::cerr); });
    init->add_option("--user", all->init.users, "Who may run the agent; without it everybody who keeps projects here")->type_name("NAME");
    init->add_option("--root", all->init.roots, "Where, for these users; without it ~/projects, ~/src and their like")
        ->type_name("DIRECTORY");
    add_optional(init, "--output", all->init.output, "Where to write it; - is standard output")->type_name("FILE");

    auto *check =
        add_command(app, chosen, "check", "Check the policy and whether this host fits it; as root, the roots of every user too", [all] {
            run_check(all->file, all->policy_only ? CheckScope::policy_only : CheckScope::host, all->json, std::cout, std::cerr);
        });
    add_optional(check, "FILE", all->file, "A draft to check instead of the installed policy, alone and without policy.d");
    check->add_flag("--policy-only", all->policy_only,
                    "The policy alone, not whether this host fits it: where a system is built for another");
    add_json(check, all->json);

    add_command(app, chosen, "schema", "Print a JSON Schema of the policy, for editors", [] { run_schema(std::cout); });

    auto *edit = add_command(app, chosen, "edit", "Change the policy with an editor; what is not valid never takes its place",
                             [all] { run_edit(all->file, std::cout, std::cerr); });
    add_optional(edit, "FILE", all->file,
                 "The file to change, of policy.d by its name there, or users.d/NAME.yaml; without it the main one");

    auto *apply =
        add_command(app, chosen, "apply", "Make the host follow the policy: accounts, directories, the agent's program, the sudo rule",
                    [all] { run_apply(all->for_apply(), std::cout, std::cerr); });
    add_applying(apply, *all);

    auto *rollback = add_command(app, chosen, "rollback", "Put the policy back that was applied before, and apply it",
                                 [all] { run_rollback(all->yes, all->for_apply(), std::cout, std::cerr); });
    rollback->add_flag("--yes", all->yes, "Do not ask");
    add_applying(rollback, *all);

    add_command(app, chosen, "sudoers", "Print the sudo rule that apply would install, after visudo has checked it",
                [] { run_sudoers(std::cout, std::cerr); });

    auto *remove = add_command(app, chosen, "remove", "Undo what apply did: the sudo rule, the hidden program",
                               [all] { run_remove(all->remove, std::cout); });
    remove->add_flag("--state", all->remove.state, "Remove what is kept for each user too: the agents' homes");
    remove->add_flag("--accounts", all->remove.accounts, "With --state: remove the agents' accounts too");
    remove->add_flag("--keep-hidden", all->remove.keep_hidden, "Leave the agent's program closed to everybody but root");
    remove->add_flag("--yes", all->remove.yes, "Do not ask");
    remove->add_flag("--dry-run", all->remove.dry_run, "Say what would change, and change nothing");
}

} // namespace pi_agent
