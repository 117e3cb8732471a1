// May this caller run the agent in this directory? A pure function; both wrapper and runner ask it, only the runner's answer counts.
#pragma once

#include "common/decide/access_rules.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pi_agent {

// A granted root after resolution: `path` is canonical.
struct RootCandidate {
    std::string path;
    std::optional<Gid> by_group;
    Position where;
};

struct Allowed {
    std::size_t root;  // index of the candidate that holds the directory: the innermost where roots nest
    std::string below; // path of the directory beneath that root, "" for the root itself; any bytes
};

struct Refused {
    std::string text;
};

// `cwd` is the canonical path of the working directory (any bytes).
std::variant<Allowed, Refused> decide(const Account &caller, const AccessRules &rules, const std::vector<RootCandidate> &roots,
                                      const std::string &cwd);

// For a working directory whose mount is not that of the root that holds it.
Refused on_other_mount(const RootCandidate &root, const std::string &cwd);

// What refuses every start of a user one of whose roots cannot be used.
Diagnostic unusable_root(const AccessRules &rules, const Position &where, const std::string &problem);

} // namespace pi_agent
