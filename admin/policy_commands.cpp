// The command line of the commands about the policy: check, apply, sudoers.
#include "admin/apply.hpp"
#include "admin/check.hpp"
#include "admin/commands.hpp"
#include "admin/show_sudoers.hpp"

#include <iostream>

namespace pi_agent {

namespace {

struct Given {
    std::string file;
    bool dry_run = false, no_canary = false;
};

void add_check(CLI::App &app, Command &chosen)
{
    const auto all = std::make_shared<Given>();
    auto *check = app.add_subcommand("check", "Check the policy and whether this host fits it; as root, the roots of every user too");
    const auto *file = check->add_option("FILE", all->file, "A draft to check instead of the installed policy, alone and without policy.d");
    on(check, chosen, [all, file] { run_check(given(file, all->file), std::cout, std::cerr); });
}

void add_apply(CLI::App &app, Command &chosen)
{
    const auto all = std::make_shared<Given>();
    auto *apply = app.add_subcommand("apply", "Make the host follow the policy: accounts, directories, the agent's program, the sudo rule");
    apply->add_flag("--dry-run", all->dry_run, "Say what would change, and change nothing");
    apply->add_flag("--no-canary", all->no_canary,
                    "Do not try the sandbox afterwards: where no session can run yet, as in an image that is being built");
    on(apply, chosen, [all] { run_apply(all->dry_run, !all->no_canary, std::cout, std::cerr); });
}

void add_sudoers(CLI::App &app, Command &chosen)
{
    auto *sudoers = app.add_subcommand("sudoers", "Print the sudo rule that apply would install, after visudo has checked it");
    on(sudoers, chosen, [] { run_sudoers(std::cout, std::cerr); });
}

} // namespace

void add_policy_commands(CLI::App &app, Command &chosen)
{
    add_check(app, chosen);
    add_apply(app, chosen);
    add_sudoers(app, chosen);
}

} // namespace pi_agent
