// What the runner tells the canary about its session.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// What the runner tells the canary about the session, by argument: "name=value".
struct CanaryPlan {
    std::string project;                           // may be written
    std::string home;                              // of the agent
    std::string user_home;                         // of the caller: no part of it may be visible except what the policy names
    std::map<std::string, std::string> namespaces; // that must differ from the host's: kind, and the host's own (stat(2) st_ino)
    bool confined = true;                          // false: only what account and view must hold is asked
    std::vector<std::string> allowed_calls = {};   // that the policy does not refuse, as it does otherwise
    bool has_gate = false;                         // a network of hosts: nothing but the gate may answer
};

constexpr std::string_view canary_namespace_prefix = "host-";
constexpr const char *canary_unconfined = "unconfined=";
constexpr const char *canary_with_gate = "gate=";
constexpr const char *canary_tunnel = "a tunnel"; // what the proxy above the gate should open; if it does not, the sandbox still holds
constexpr std::string_view canary_allowed_call = "allowed-call";

inline std::vector<std::string> canary_arguments(const CanaryPlan &plan)
{
    std::vector<std::string> arguments = {"project=" + plan.project, "home=" + plan.home, "user-home=" + plan.user_home};
    if (!plan.confined) arguments.emplace_back(canary_unconfined);
    if (plan.has_gate) arguments.emplace_back(canary_with_gate);
    for (const auto &[kind, host] : plan.namespaces)
        arguments.push_back(std::string(canary_namespace_prefix) + kind + "=" + host);
    for (const auto &name : plan.allowed_calls)
        arguments.push_back(std::string(canary_allowed_call) + "=" + name);
    return arguments;
}

// Throws Failure(usage).
CanaryPlan parse_canary_arguments(const std::vector<std::string> &arguments);

} // namespace pi_agent
