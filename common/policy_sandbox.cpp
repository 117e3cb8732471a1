// The section `sandbox`: an explicit method, and what each cannot do.
#include "common/policy_sandbox.hpp"

#include "common/policy_paths.hpp"

#include <string>
#include <string_view>

namespace pi_agent {

namespace {

// A key that method none has no means for, whatever it says; `harmless` is the one value that asks for nothing.
struct Unmet {
    std::string_view section; // "" for the top
    std::string_view key;
    std::string_view harmless;
};

// Without mounts, control over the network and a file system view of its own, these would be words.
constexpr Unmet unmet_by_none[] = {
    {"", "network", "full"},       {"", "view", "host"},           {"", "view_paths", ""},     {"", "toolchains", ""},
    {"", "scratch", "disk"},       {"", "settings_lock", "false"}, {"", "box_notes", "false"}, {"projects", "paths", "host"},
    {"projects", "scope", "root"}, {"projects", "protect", ""},    {"projects", "mask", ""},
};

const YamlNode *find(const YamlNode &node, std::string_view key, Position &where)
{
    for (const auto &entry : node.entries) {
        if (entry.key != key) continue;
        where = entry.where;
        return &entry.value;
    }
    return nullptr;
}

void refuse_for_none(const YamlNode &root, const Policy &policy, Problems &problems)
{
    for (const auto &unmet : unmet_by_none) {
        Position where;
        const YamlNode *section = unmet.section.empty() ? &root : find(root, unmet.section, where);
        const YamlNode *value = section == nullptr ? nullptr : find(*section, unmet.key, where);
        if (value == nullptr) continue;
        const bool asks_nothing = value->kind == YamlNode::Kind::scalar ? !unmet.harmless.empty() && value->text == unmet.harmless
                                                                        : value->kind == YamlNode::Kind::sequence && value->items.empty();
        if (asks_nothing) continue;
        const std::string key = (unmet.section.empty() ? "" : std::string(unmet.section) + ".") + std::string(unmet.key);
        problems.add(where, key, "sandbox.method none (" + to_string(policy.sandbox.where) + ") cannot do this: it confines nothing",
                     "remove the key, or use the method systemd or bwrap");
    }
}

} // namespace

void read_sandbox(const PolicyValue &section, Policy &policy, Problems &problems)
{
    const auto read_method = [&](const PolicyValue &value) {
        const auto choice = read_choice(value, {"systemd", "bwrap", "none"}, {"podman", "docker"}, problems);
        policy.sandbox.where = value.where;
        if (choice)
            policy.sandbox.method = *choice == "bwrap"  ? SandboxMethod::bwrap
                                    : *choice == "none" ? SandboxMethod::none
                                                        : SandboxMethod::systemd;
    };
    policy.sandbox.where = section.where;
    read_section(section, {{"method", read_method}}, problems);
}

void refuse_what_method_cannot(const YamlNode &root, const Policy &policy, Problems &problems)
{
    if (policy.sandbox.method == SandboxMethod::none) return refuse_for_none(root, policy, problems);
    const auto mode = policy.network.mode;
    if (policy.sandbox.method == SandboxMethod::bwrap && (mode == NetworkMode::loopback || mode == NetworkMode::listed))
        problems.add(policy.network.where, "network",
                     "sandbox.method bwrap (" + to_string(policy.sandbox.where) +
                         ") cannot filter addresses: it has the host's network, or one of the session's own with nothing in it",
                     "use 'full' or 'none', or the method systemd");
}

} // namespace pi_agent
