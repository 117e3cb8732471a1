// Words about fd and rg, and an agent that does not look for them.
#include "runner/plan/search_tools.hpp"

namespace pi_agent {

std::string name_package(const std::string &missing)
{
    const std::string words =
        "this host has no " + missing + ", and the agent downloads it where the network allows that; install it (Debian: ";
    return words + (missing == "fd"
                        ? "fd-find, whose fdfind the agent finds; Debian 12's is too old for searches outside of git repositories)"
                        : "ripgrep)");
}

void keep_from_downloading(EnvironmentInput &environment, const NetworkPolicy &network, const std::vector<std::string> &missing)
{
    if (network.mode == NetworkMode::full || missing.empty()) return;
    environment.defaults["PI_OFFLINE"] = {"1", "pi-agent, because fd or rg is missing and the network is restricted"};
}

} // namespace pi_agent
