// Four ways in which a network is closed.
#include "wrapper/network_notice.hpp"

#include <csignal>

namespace pi_agent {

namespace {

// Who waits in vain gives up with Ctrl-C.
bool has_failed(const AgentEnded &ended)
{
    return ended.by_signal ? ended.value == SIGINT : ended.value != 0;
}

} // namespace

std::string closed_network_notice(const NetworkPolicy &network, const AgentEnded &ended)
{
    if (network.mode == NetworkMode::full || !has_failed(ended)) return "";
    std::string reached;
    if (network.mode == NetworkMode::none) reached = "no connection out of the session, so no model provider";
    if (network.mode == NetworkMode::loopback) reached = "only services of this host, so no model provider elsewhere";
    if (network.mode == NetworkMode::hosts) reached = "only the hosts that it names";
    if (network.mode == NetworkMode::listed)
        reached = "only the addresses of its list, which may lack those of the model provider or of the name server";
    return "if the agent could not connect: the policy's network (" + to_string(network.where) + ") allows " + reached +
           "; ask the administrator to change that key";
}

} // namespace pi_agent
