// Patterns and paths of a policy that mean less than they seem to.
#include "admin/diagnose/host_checks.hpp"

#include "common/base/text.hpp"

#include <string>
#include <vector>

namespace pi_agent {

namespace {

void look_at_patterns(const Rules &rules, std::vector<Diagnostic> &found)
{
    for (const auto &mask : rules.mask.value_or(std::vector<PolicyPath>()))
        if (mask.path.find("**/") != std::string::npos)
            found.push_back({mask.where, rules.places.at("projects.mask").key,
                             quote(mask.path) + " does not match at any depth, because '*' stands for no '/', however often it is written",
                             "write a pattern without '/' for a name anywhere in the project, or name each path"});
    const auto &protection = rules.protect ? *rules.protect : Protection();
    for (const auto &path : protection.value_or(std::vector<PolicyPath>()))
        if (path.path.find_first_of("*?") != std::string::npos)
            found.push_back({path.where, rules.places.at("projects.protect").key,
                             quote(path.path) + " is the one path that is written so, because what is protected has no wildcards",
                             "name the paths themselves, or a directory that holds them"});
}

} // namespace

std::vector<Diagnostic> find_odd_patterns(const Policy &policy)
{
    std::vector<Diagnostic> found;
    for (const auto &[path, file_class] : policy.config_classes.rules())
        if (path.find_first_of("*?") != std::string::npos)
            found.push_back({{},
                             "config.classes." + escape_for_display(path),
                             "is the one path that is written so, because classes have no wildcards",
                             "name the directory around it, or each path"});
    look_at_patterns(policy.rules, found);
    for (const auto &entry : policy.users) {
        if (entry.rules) look_at_patterns(*entry.rules, found);
        for (const auto &root : entry.roots)
            if (root.rules) look_at_patterns(*root.rules, found);
    }
    return found;
}

} // namespace pi_agent
