// The commands that change one thing in the policy, and read one: user with what is below it, set and get.
#include "admin/cli/adding.hpp"

#include "admin/apply/apply.hpp"

#include <iostream>
#include <memory>

namespace pi_agent {

namespace {

struct PolicyChange {
    ChangeOrder order;
    std::string name, key, value;
    std::vector<std::string> roots;
    bool json = false;
};

void add_dry_run(CLI::App *command, PolicyChange &change)
{
    command->add_flag("-n,--dry-run", change.order.dry_run, "Show the lines that would change, and change nothing");
}

} // namespace

void add_change_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<PolicyChange>();
    auto *user = app.add_subcommand("user", "Add a user to the policy, or take one out: add, remove");
    user->require_subcommand(1);
    auto *add = add_command(*user, chosen, "add", "Write an entry for a user, into users.d",
                            [all] { run_user_add(all->name, all->roots, all->order, std::cout, std::cerr); });
    add->add_option("NAME", all->name, "The user's account")->required();
    add->add_option("--root", all->roots, "Where they may start the agent: an absolute path, or '~/…' in quotes; as often as needed")
        ->type_name("DIRECTORY")
        ->required();
    add_dry_run(add, *all);

    auto *remove = add_command(*user, chosen, "remove", "Take a user's entry out of the policy",
                               [all] { run_user_remove(all->name, all->order, std::cout, std::cerr); });
    remove->add_option("NAME", all->name, "The user's account")->required();
    remove->add_flag("-y,--yes", all->order.yes, "Do not ask");
    add_dry_run(remove, *all);

    auto *set = add_command(app, chosen, "set", "Give a key of the policy a value",
                            [all] { run_set(all->key, all->value, all->order, std::cout, std::cerr); });
    set->add_option("KEY", all->key, "limits.memory, network, users.NAME.roots")->required();
    set->add_option("VALUE", all->value, "A text, or YAML in one line: 8G, true, '[~/projects, /srv/app]'")->required();
    add_dry_run(set, *all);

    auto *get = add_command(app, chosen, "get", "Print the value that the policy gives to a key",
                            [all] { run_get(all->key, all->json, std::cout); });
    get->add_option("KEY", all->key, "limits.memory, network, users.NAME.roots")->required();
    add_json(get, all->json);
}

} // namespace pi_agent
