// Matching a working directory against the caller's roots.
#include "common/decide/decision.hpp"

#include "common/base/escape.hpp"
#include "common/policy/policy_paths.hpp"

namespace pi_agent {

namespace {

std::string refusal_text(const Account &caller, const AccessRules &rules, const std::vector<RootCandidate> &roots, const std::string &cwd)
{
    std::string text = "denied: " + escape_for_display(cwd) + " is outside the project roots of " + caller.name + " (" +
                       to_string(rules.where) + ", " + rules.entry + ".roots):";
    if (roots.empty()) text += " none of them can be used";
    for (const auto &root : roots)
        text += " " + escape_for_display(root.path);
    if (roots.empty()) return text + "; ask the administrator";
    return text + "; change into one of them, or ask the administrator for another root";
}

} // namespace

std::variant<Allowed, Refused> decide(const Account &caller, const AccessRules &rules, const std::vector<RootCandidate> &roots,
                                      const std::string &cwd)
{
    std::optional<std::size_t> best;
    for (std::size_t index = 0; index < roots.size(); ++index) {
        if (!is_within(cwd, roots[index].path)) continue;
        if (!best || roots[index].path.size() > roots[*best].path.size()) best = index;
    }
    if (!best) return Refused{refusal_text(caller, rules, roots, cwd)};
    const std::string &root = roots[*best].path;
    return Allowed{*best, cwd.size() > root.size() ? cwd.substr(root.size() + 1) : std::string()};
}

Refused on_other_mount(const RootCandidate &root, const std::string &cwd)
{
    return {"denied: " + escape_for_display(cwd) + " lies on another file system that is mounted inside the root " +
            escape_for_display(root.path) + ", and those are not shown to the agent; ask the administrator to make it a root of its own"};
}

Diagnostic unusable_root(const AccessRules &rules, const Position &where, const std::string &problem)
{
    return {where, rules.entry + ".roots", problem, ""};
}

} // namespace pi_agent
