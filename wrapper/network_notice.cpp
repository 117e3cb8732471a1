// The ways in which a network is closed, by the policy or by an option of the start.
#include "wrapper/network_notice.hpp"

#include <csignal>

namespace pi_agent {

namespace {

// Who waits in vain gives up with Ctrl-C.
bool has_failed(const AgentEnded &ended)
{
    return ended.by_signal ? ended.value == SIGINT : ended.value != 0;
}

// What an option of the start leaves is loopback, or nothing (common/decide/effective.cpp).
const char *reached_in(const NetworkPolicy &network)
{
    if (network.mode == NetworkMode::none) return "no connection out of the session, so no model provider";
    if (network.mode == NetworkMode::loopback || is_of_start(network)) return "only services of this host, so no model provider elsewhere";
    if (network.mode == NetworkMode::hosts) return "only the hosts that it names";
    return "only the addresses of its list, which may lack those of the model provider or of the name server";
}

} // namespace

std::string closed_network_notice(const NetworkPolicy &network, const AgentEnded &ended)
{
    if (network.mode == NetworkMode::full || !has_failed(ended)) return "";
    const char *remedy = is_of_start(network) ? "start without that option" : "ask the administrator to change that key";
    return "if the agent could not connect: " + name_of(network) + " allows " + reached_in(network) + "; " + remedy;
}

} // namespace pi_agent
