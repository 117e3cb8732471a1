// A policy that is valid but for the value of one key of the table.
#pragma once

#include "common/policy/policy_sections.hpp"

#include <string>

namespace pi_agent::test {

inline std::string free_name(std::string_view path)
{
    if (path.find("providers.*") != std::string_view::npos) return "anthropic";
    return path.find("env.*") != std::string_view::npos ? "A" : "x";
}

// `value` is YAML in one line. Free names are alice, those of providers, A and x.
inline std::string policy_with(const PolicyKey &key, const std::string &value)
{
    const std::string user = "alice: {roots: [/srv/a]";
    const std::string_view path = key.path;
    if (path == "version") return "version: " + value + "\nusers: {" + user + "}}\n";
    if (path == "users") return "version: 1\nusers: " + value + "\n";
    if (path == "users.*") return "version: 1\nusers: {alice: " + value + "}\n";
    if (path == "users.*.roots") return "version: 1\nusers: {alice: {roots: " + value + "}}\n";
    if (path == "users.*.roots.*") return "version: 1\nusers: {alice: {roots: [" + value + "]}}\n";
    if (path.starts_with("users.*.roots.*.")) {
        const auto below = path.substr(16);
        const auto dot = below.find('.');
        if (dot != std::string_view::npos) // a key below one of a root's
            return "version: 1\nusers: {alice: {roots: [{path: /srv/a, " + std::string(below.substr(0, dot)) + ": {" +
                   std::string(below.substr(dot + 1)) + ": " + value + "}}]}}\n";
        const std::string name(below);
        return "version: 1\nusers: {alice: {roots: [{" + (name == "path" ? "" : std::string("path: /srv/a, ")) + name + ": " + value +
               "}]}}\n";
    }
    std::string text;
    std::string closing;
    for (std::string_view rest = path.substr(path.starts_with("users.*.") ? 8 : 0); !rest.empty();) {
        const auto part = rest.substr(0, rest.find('.'));
        const std::string name = part != "*" ? std::string(part) : free_name(path);
        rest.remove_prefix(std::min(part.size() + 1, rest.size()));
        text += (text.empty() ? "" : "{") + name + ": ";
        closing += rest.empty() ? "" : "}";
    }
    text += value + closing;
    if (path.starts_with("users.*.")) return "version: 1\nusers: {" + user + ", " + text + "}}\n";
    return "version: 1\nusers: {" + user + "}}\n" + text + "\n";
}

// The dotted key that diagnostics name it by in that policy.
inline std::string key_in_policy(const PolicyKey &key)
{
    std::string name(key.path);
    if (name.starts_with("users.*")) name.replace(6, 1, "alice");
    if (const auto root = name.find(".roots.*"); root != std::string::npos) name.replace(root, 8, ".roots[0]");
    const auto star = name.find('*');
    if (star != std::string::npos) name.replace(star, 1, free_name(key.path));
    return name;
}

} // namespace pi_agent::test
