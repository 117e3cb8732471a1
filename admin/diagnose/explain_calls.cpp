// The part of an explanation about system calls, debuggers and sockets: what the policy's hardening says.
#include "admin/diagnose/explain.hpp"

#include "common/policy/session_calls.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

// Their names are from the tables of common/policy/session_calls.hpp.
std::string said_line(const char *label, const char *key, const std::vector<PolicyPath> &list)
{
    if (list.empty()) return "";
    return fmt::format("{}{} (hardening.{}, {})\n", label, fmt::join(texts_of(list), ", "), key, to_string(list.front().where));
}

constexpr const char *tracing_words[] = {"auto", "always", "never"};

// The default says nothing: who asks about a debugger reads docs/guarantees.md, and doctor says what this kernel can do.
std::string tracing_text(const Policy &policy)
{
    if (policy.tracing == Tracing::automatic) return "";
    return fmt::format("tracing:  {} (hardening.tracing: {}): programs of a session {} others of the same session\n",
                       policy.tracing == Tracing::always ? "allowed" : "refused", tracing_words[static_cast<int>(policy.tracing)],
                       policy.tracing == Tracing::always ? "may debug" : "cannot debug");
}

} // namespace

std::string calls_text(const Policy &policy)
{
    const auto &calls = policy.calls;
    return tracing_text(policy) + said_line("calls:    refused besides: ", "deny_system_calls", calls.denied) +
           said_line("calls:    not refused: ", "allow_system_calls", calls.allowed) +
           said_line("sockets:  only ", "address_families", calls.families);
}

nlohmann::json calls_json(const Policy &policy)
{
    std::vector<std::string> families;
    for (std::size_t index = 0; index < std::size(address_families); ++index)
        if ((address_families_of(policy.calls) & (1U << index)) != 0) families.emplace_back(address_families[index]);
    return {{"tracing", tracing_words[static_cast<int>(policy.tracing)]},
            {"deny_system_calls", denied_calls_of(policy.calls)},
            {"allow_system_calls", allowed_calls_of(policy.calls)},
            {"address_families", families}};
}

} // namespace pi_agent
