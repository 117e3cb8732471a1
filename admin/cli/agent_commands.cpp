// The commands that install agents: install-agent, and agent list, upgrade, rollback and prune.
#include "admin/cli/adding.hpp"

#include "admin/agents/agents.hpp"

#include <iostream>
#include <memory>

namespace pi_agent {

namespace {

struct AgentOptions {
    InstallOrder install;
    bool json = false, yes = false;
};

void add_installing(CLI::App *command, AgentOptions &options)
{
    command->add_option(
        "AGENT", options.install.request,
        "AGENT or AGENT@VERSION, where VERSION is exact or a tag such as latest; without it pi, as this release was tested");
    command->add_option("--registry", options.install.registry, "The npm registry; without it the one in this host's npm configuration")
        ->type_name("URL");
}

} // namespace

void add_agent_commands(CLI::App &app, Action &chosen)
{
    const auto all = std::make_shared<AgentOptions>();
    auto *install = add_command(app, chosen, "install-agent", "Fetch an agent from an npm registry, and make it the one that starts",
                                [all] { run_install_agent(all->install, std::cout); });
    add_installing(install, *all);

    auto *agent = app.add_subcommand("agent", "Look after installed agents: list, upgrade, rollback, prune");
    agent->require_subcommand(1);
    auto *list = add_command(*agent, chosen, "list", "List the agents that are installed, with their versions",
                             [all] { run_agent_list(all->json, std::cout); });
    add_json(list, all->json);

    auto *upgrade =
        add_command(*agent, chosen, "upgrade", "Install the version that this release was tested with, or the one named", [all] {
            all->install.is_upgrade = true;
            run_install_agent(all->install, std::cout);
        });
    add_installing(upgrade, *all);

    auto *rollback = add_command(*agent, chosen, "rollback", "Start the version before again; a second rollback takes it back",
                                 [all] { run_agent_rollback(all->install.request, all->yes, std::cout); });
    rollback->add_option("AGENT", all->install.request, "The agent; without it pi");
    rollback->add_flag("-y,--yes", all->yes, "Do not ask");

    auto *prune = add_command(*agent, chosen, "prune", "Remove versions other than the one in use and the one before",
                              [all] { run_agent_prune(all->yes, std::cout); });
    prune->add_flag("-y,--yes", all->yes, "Do not ask");
}

} // namespace pi_agent
