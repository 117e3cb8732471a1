// Three ways in which a network is closed.
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
    if (network.mode == NetworkMode::none) reached = "nothing outside the session, so no model";
    if (network.mode == NetworkMode::loopback) reached = "this host's own services alone, so no model elsewhere";
    if (network.mode == NetworkMode::listed)
        reached = "the addresses of its list alone, so a model or name server that is not among them is not";
    return "the agent failed; if it could not connect: the policy's network (" + to_string(network.where) + ") lets it reach " + reached +
           "; ask your administrator to change that key";
}

} // namespace pi_agent
