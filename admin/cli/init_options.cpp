// The options of pi-agentctl init: an answer to each of its questions.
#include "admin/cli/commands.hpp"

#include "admin/apply/apply.hpp"

namespace pi_agent {

namespace {

// CLI11's own optional would take an empty value for none.
CLI::Option *add_answer(CLI::App &init, const char *name, std::optional<std::string> &value, const char *help)
{
    return init.add_option_function<std::string>(
        name, [&value](const std::string &given) { value = given; }, help);
}

} // namespace

void add_init_options(CLI::App &init, InitOrder &order)
{
    init.add_option("--user", order.users, "Who may run the agent; without it everybody who keeps projects here")->type_name("NAME");
    init.add_option("--root", order.roots, "Where, for these users; without it ~/projects, ~/src and similar")->type_name("DIRECTORY");
    add_answer(init, "--network", order.network,
               "What sessions reach: hosts (the provider's), names of hosts, full, loopback, none, or addresses; separated by commas")
        ->type_name("NETWORK");
    add_answer(init, "--key", order.key,
               "A provider whose key everybody uses, or none. The key is asked for, or is the first line of standard input")
        ->type_name("PROVIDER");
    add_answer(init, "--env-file", order.env_file, "A file of variables with the keys that everybody uses; only root can read it")
        ->type_name("FILE");
    add_answer(init, "--output", order.output, "Where to write it; - is standard output")->type_name("FILE");
    init.add_flag("-y,--yes", order.yes, "Ask nothing, also at a terminal");
}

} // namespace pi_agent
