// For tests/bench/sync: one config sync as a program of its own, as root, without the launch around it.
#include "common/base/channel.hpp"
#include "common/base/error.hpp"
#include "runner/root/errand/errand.hpp"

#include <iostream>
#include <span>

using namespace pi_agent;

namespace {

Account known_account(const std::string &name)
{
    const auto account = find_account(name);
    if (!account) throw Failure(ExitStatus::usage, "no account " + name);
    return *account;
}

void sync(const std::string &config, const std::string &state_directory, const std::string &user_name, const std::string &agent_name)
{
    const AsRoot root = AsRoot::claim();
    const Account user = known_account(user_name);
    const Account agent = known_account(agent_name);
    AccessRules rules;
    rules.config_directory = config;
    const StateDirectory state = open_state_directory(root, state_directory, user.name, agent, [] {});
    const auto [wrapper, silent_wrapper] = make_channel();
    const auto [termination, silent_termination] = make_channel();
    const auto notices = sync_config(root, user, agent, plan_sync(Policy{}, rules, user, {}, {}), state, FdRef(-1),
                                     SessionWatch{wrapper, termination}, [](const std::string &) {});
    for (const auto &notice : notices)
        std::cerr << notice << "\n";
}

} // namespace

int main(int argc, char **argv)
{
    const std::span<char *> arguments(argv, static_cast<std::size_t>(argc));
    if (arguments.size() != 5) {
        std::cerr << "usage: sync-driver CONFIG STATE USER AGENT\n";
        return 64;
    }
    try {
        sync(arguments[1], arguments[2], arguments[3], arguments[4]);
    } catch (const std::exception &failure) {
        std::cerr << "sync-driver: " << failure.what() << "\n";
        return 1;
    }
    return 0;
}
