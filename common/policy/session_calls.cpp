// The rules for names of system calls in a policy, and what its lists come to.
#include "common/policy/session_calls.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/policy/policy.hpp"

namespace pi_agent {

namespace {

// Why a policy cannot let a call through. Words.
struct RefusedCalls {
    std::string_view names;
    const char *why;
    const char *remedy;
};
constexpr const char *take_it_out = "remove it";
constexpr RefusedCalls never_allowed[] = {
#include "common/never_allowed.inc"
};

template <typename Calls>
bool has_call(const Calls &calls, const std::string &name)
{
    return std::any_of(std::begin(calls), std::end(calls), [&](const auto &call) { return name == call.name; });
}

std::vector<std::string_view> names_to_deny()
{
    std::set<std::string_view> groups;
    std::vector<std::string_view> names;
    for (const auto &call : deniable_calls) {
        names.emplace_back(call.name);
        if (*call.group != '\0') groups.insert(call.group);
    }
    names.insert(names.end(), groups.begin(), groups.end());
    return names;
}

} // namespace

std::optional<TextProblem> problem_of_denied_call(const std::string &name)
{
    const auto names = names_to_deny();
    if (std::find(names.begin(), names.end(), name) != names.end()) return std::nullopt;
    if (has_call(allowable_calls, name)) return TextProblem{"is refused in every session", take_it_out};
    for (const auto &calls : never_allowed)
        if (has_word(calls.names, name)) return TextProblem{"is refused in every session, or decided by hardening.tracing", take_it_out};
    return TextProblem{"is not a system call or group that a policy can refuse: sessions do not make it, or no program runs without it" +
                           did_you_mean(name, names),
                       "name one of those in docs/reference/session-calls.md"};
}

std::optional<TextProblem> problem_of_allowed_call(const std::string &name)
{
    if (has_call(allowable_calls, name)) return std::nullopt;
    for (const auto &calls : never_allowed)
        if (has_word(calls.names, name)) return TextProblem{calls.why, calls.remedy};
    if (!name.empty() && name.front() == '@') return TextProblem{"is a group, and calls are allowed one by one", "name its calls"};
    if (has_call(deniable_calls, name)) return TextProblem{"is a call that sessions make anyway", take_it_out};
    std::vector<std::string_view> names;
    std::string list;
    for (const auto &call : allowable_calls) {
        names.emplace_back(call.name);
        list += (list.empty() ? "" : ", ") + std::string(call.name);
    }
    return TextProblem{"is not a call that a policy can allow" + did_you_mean(name, names), "name some of " + list};
}

std::optional<TextProblem> problem_of_address_family(const std::string &name)
{
    const auto *const found = std::find(std::begin(address_families), std::end(address_families), name);
    if (found != std::end(address_families)) return std::nullopt;
    const std::vector<std::string_view> names(std::begin(address_families), std::end(address_families));
    return TextProblem{"is not a kind of socket that a session can have: others would go around the policy's network" +
                           did_you_mean(name, names),
                       "name some of unix, inet, inet6, netlink"};
}

std::vector<std::string> denied_calls_of(const CallsPolicy &calls)
{
    std::set<std::string> names;
    for (const auto &said : calls.denied)
        for (const auto &call : deniable_calls)
            if (said.path == call.name || said.path == call.group) names.insert(call.name);
    return {names.begin(), names.end()};
}

std::vector<std::string> allowed_calls_of(const CallsPolicy &calls)
{
    std::set<std::string> names;
    for (const auto &said : calls.allowed)
        names.insert(said.path);
    return {names.begin(), names.end()};
}

bool is_allowed_call(const CallsPolicy &calls, std::string_view name)
{
    return std::any_of(calls.allowed.begin(), calls.allowed.end(), [&](const PolicyPath &said) { return said.path == name; });
}

unsigned address_families_of(const CallsPolicy &calls)
{
    if (calls.families.empty()) return all_address_families;
    unsigned set = 0;
    for (std::size_t index = 0; index < std::size(address_families); ++index)
        if (std::any_of(calls.families.begin(), calls.families.end(),
                        [&](const PolicyPath &said) { return said.path == address_families[index]; }))
            set |= 1U << index;
    return set;
}

} // namespace pi_agent
