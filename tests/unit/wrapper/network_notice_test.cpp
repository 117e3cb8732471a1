// Which key closed the network of an agent that failed: wrapper/session_client.hpp
#include "wrapper/session_client.hpp"

#include <csignal>
#include <doctest/doctest.h>

using namespace pi_agent;

namespace network_notice_test {

namespace {

NetworkPolicy closed(NetworkMode mode)
{
    NetworkPolicy network;
    network.mode = mode;
    network.where = Position{"/etc/pi-agent/policy.yaml", 9, 10};
    return network;
}

} // namespace

TEST_CASE("an agent that failed is told of with the key that closed its network")
{
    for (const NetworkMode mode : {NetworkMode::none, NetworkMode::loopback, NetworkMode::listed, NetworkMode::hosts})
        for (const AgentEnded ended : {AgentEnded{false, 1}, AgentEnded{true, SIGINT}}) {
            const std::string notice = closed_network_notice(closed(mode), ended);
            CHECK(notice.find("the policy's network (/etc/pi-agent/policy.yaml:9:10)") != std::string::npos);
            CHECK(notice.find("ask the administrator") != std::string::npos);
        }
    CHECK(closed_network_notice(closed(NetworkMode::none), {false, 1}).find("no connection out of the session") != std::string::npos);
}

TEST_CASE("who closed the network by an option of the start is told of that option, and not sent to the administrator")
{
    for (const NetworkMode mode : {NetworkMode::loopback, NetworkMode::listed, NetworkMode::hosts}) {
        NetworkPolicy network;
        network.mode = mode;
        network.where = Position{"--pi-agent-network=loopback"};
        CHECK(closed_network_notice(network, {false, 1}) ==
              "if the agent could not connect: --pi-agent-network=loopback allows only services of this host, so no model provider "
              "elsewhere; start without that option");
    }
    NetworkPolicy none;
    none.mode = NetworkMode::none;
    none.where = Position{"--pi-agent-network=none"};
    CHECK(closed_network_notice(none, {true, SIGINT}) ==
          "if the agent could not connect: --pi-agent-network=none allows no connection out of the session, so no model provider; start "
          "without that option");
}

TEST_CASE("nothing is said where the network is open, or the agent did not fail")
{
    CHECK(closed_network_notice(closed(NetworkMode::full), {false, 1}).empty());
    CHECK(closed_network_notice(closed(NetworkMode::none), {false, 0}).empty());
    CHECK(closed_network_notice(closed(NetworkMode::none), {true, SIGKILL}).empty());
}

} // namespace network_notice_test
