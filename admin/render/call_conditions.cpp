// A system-call filter as data, and as the engines' JSON.
#include "admin/render/render.hpp"
#include "runner/filter/call_names.hpp"
#include "runner/filter/call_rules.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

using Conditions = std::vector<PassingCondition>; // one of them holds

// All the ways for a test to fail: one bit that is different.
Conditions failing(const ArgumentTest &test)
{
    if (!test.equal) return {{{test.index, {test.mask, test.value}}}};
    Conditions conditions;
    for (std::uint64_t bit = 1; bit != 0; bit <<= 1U)
        if ((test.mask & bit) != 0) conditions.push_back({{test.index, {bit, ~test.value & bit}}});
    return conditions;
}

// Empty if both cannot hold.
std::optional<PassingCondition> both(PassingCondition one, const PassingCondition &other)
{
    for (const auto &[index, bits] : other) {
        const auto [known, is_new] = one.emplace(index, bits);
        if (is_new) continue;
        ArgumentBits &merged = known->second;
        if (((merged.value ^ bits.value) & merged.mask & bits.mask) != 0) return std::nullopt;
        merged = {merged.mask | bits.mask, merged.value | bits.value};
    }
    return one;
}

// True when `wider` holds wherever `narrower` does.
bool holds_wherever(const PassingCondition &wider, const PassingCondition &narrower)
{
    return std::all_of(wider.begin(), wider.end(), [&](const auto &wanted) {
        const auto found = narrower.find(wanted.first);
        return found != narrower.end() && (found->second.mask & wanted.second.mask) == wanted.second.mask &&
               (found->second.value & wanted.second.mask) == wanted.second.value;
    });
}

// Without those that follow from another one.
Conditions simplest(const Conditions &conditions)
{
    Conditions kept;
    for (const auto &condition : conditions) {
        if (std::any_of(kept.begin(), kept.end(), [&](const auto &other) { return holds_wherever(other, condition); })) continue;
        kept.erase(std::remove_if(kept.begin(), kept.end(), [&](const auto &other) { return holds_wherever(condition, other); }),
                   kept.end());
        kept.push_back(condition);
    }
    return kept;
}

Conditions all_of(const Conditions &one, const Conditions &other)
{
    Conditions conditions;
    for (const auto &first : one)
        for (const auto &second : other)
            if (auto merged = both(first, second)) conditions.push_back(std::move(*merged));
    return simplest(conditions);
}

using Json = nlohmann::ordered_json;

#if defined(__x86_64__)
constexpr const char *architecture = "SCMP_ARCH_X86_64";
#elif defined(__aarch64__)
constexpr const char *architecture = "SCMP_ARCH_AARCH64";
#else
constexpr const char *architecture = nullptr;
#endif
static_assert(architecture != nullptr, "name this architecture as the OCI runtime specification does");

Json arguments_of(const PassingCondition &condition)
{
    Json arguments = Json::array();
    for (const auto &[index, bits] : condition) {
        if (bits.mask == whole_argument)
            arguments.push_back({{"index", index}, {"value", bits.value}, {"op", "SCMP_CMP_EQ"}});
        else
            arguments.push_back({{"index", index}, {"value", bits.mask}, {"valueTwo", bits.value}, {"op", "SCMP_CMP_MASKED_EQ"}});
    }
    return arguments;
}

} // namespace

std::map<std::string, std::vector<PassingCondition>> passing_calls()
{
    std::map<std::string, Conditions> calls;
    for (const char *name : allowed_calls)
        calls[name] = {{}};
    for (const auto &allowance : call_allowances())
        calls[allowance.name].push_back({{allowance.test.index, {allowance.test.mask, allowance.test.value}}});
    std::vector<CallDenial> denials = call_denials();
    for (const auto &denial : tuning_denials())
        denials.push_back(denial);
    for (const auto &denial : denials) {
        const auto found = calls.find(denial.name);
        if (found == calls.end()) continue;
        Conditions failures;
        for (const auto &test : denial.tests)
            for (auto &condition : failing(test))
                failures.push_back(std::move(condition));
        found->second = all_of(found->second, failures);
        if (found->second.empty()) calls.erase(found);
    }
    return calls;
}

std::string render_seccomp()
{
    Json always = Json::array();
    Json unknown = Json::array();
    Json conditional = Json::array();
    for (const auto &[name, conditions] : passing_calls())
        for (const auto &condition : conditions) {
            if (condition.empty())
                always.push_back(name);
            else
                conditional.push_back({{"names", Json::array({name})}, {"action", "SCMP_ACT_ALLOW"}, {"args", arguments_of(condition)}});
        }
    for (const auto &call : unknown_calls())
        unknown.push_back(call.name);
    Json calls = Json::array();
    calls.push_back({{"names", always}, {"action", "SCMP_ACT_ALLOW"}});
    calls.push_back({{"names", unknown}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", ENOSYS}});
    for (auto &call : conditional)
        calls.push_back(std::move(call));
    const Json profile = {{"defaultAction", "SCMP_ACT_ERRNO"},
                          {"defaultErrnoRet", EPERM},
                          {"architectures", Json::array({architecture})},
                          {"syscalls", calls}};
    return profile.dump(2) + "\n";
}

} // namespace pi_agent
