// pi-agent-canary: runs in the agent's place, asks the sandbox from inside what it can write, see and call, and reports that as JSON. Ends
// with 1 when an answer differs from the plan. With --look and paths it says what it may do with them.
#include "runner/inside/canary.hpp"

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

int main(int argc, char **argv)
{
    try {
        if (argc > 1 && std::string_view(argv[1]) == "--look") {
            std::vector<PathAccess> answers;
            std::transform(argv + 2, argv + argc, std::back_inserter(answers), look_at_path);
            std::cout << encode(answers) << '\n' << std::flush;
            return std::cout ? 0 : 1;
        }
        const CanaryPlan plan = parse_canary_arguments({argv + std::min(argc, 1), argv + argc});
        const auto findings = look_around(plan);
        const bool all = std::all_of(findings.begin(), findings.end(), [](const CanaryFinding &finding) { return finding.is_right; });
        const nlohmann::json list = mapped(findings, [&](const auto &finding) {
            return nlohmann::json{
                {"what", finding.what}, {"expected", finding.expected}, {"seen", finding.seen}, {"right", finding.is_right}};
        });
        const nlohmann::json answer = {{"right", all}, {"project", plan.project}, {"findings", list}};
        std::cout << answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n' << std::flush;
        return std::cout && all ? 0 : 1;
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "pi-agent-canary: %s\n", failure.what());
        const auto *known = dynamic_cast<const Failure *>(&failure);
        return static_cast<int>(known == nullptr ? ExitStatus::internal : known->status());
    }
}
