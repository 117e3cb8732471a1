// pi-agent-canary: run in the agent's place, asks the sandbox from inside what it can write, see and call, and says so as JSON. Ends with 1
// when anything is not as it is to be.
#include "common/error.hpp"
#include "runner/canary.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

int main(int argc, char **argv)
{
    try {
        const auto findings = pi_agent::look_around(pi_agent::parse_canary_arguments({argv + std::min(argc, 1), argv + argc}));
        const bool all =
            std::all_of(findings.begin(), findings.end(), [](const pi_agent::CanaryFinding &finding) { return finding.is_right; });
        nlohmann::json list = nlohmann::json::array();
        for (const auto &finding : findings)
            list.push_back({{"what", finding.what}, {"expected", finding.expected}, {"seen", finding.seen}, {"right", finding.is_right}});
        std::cout << nlohmann::json{{"right", all}, {"findings", list}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                  << '\n'
                  << std::flush;
        return std::cout && all ? 0 : 1;
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "pi-agent-canary: %s\n", failure.what());
        const auto *known = dynamic_cast<const pi_agent::Failure *>(&failure);
        return static_cast<int>(known == nullptr ? pi_agent::ExitStatus::internal : known->status());
    }
}
