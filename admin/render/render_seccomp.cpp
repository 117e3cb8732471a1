// One profile that lets through what passes both filters of a session (runner/filter/call_rules.hpp).
#include "admin/render/render_seccomp.hpp"

#include "admin/render/call_conditions.hpp"
#include "runner/filter/call_rules.hpp"

#include <cerrno>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

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
