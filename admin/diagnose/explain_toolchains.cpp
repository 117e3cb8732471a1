// Explaining toolchains and caches.
#include "admin/diagnose/explain.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/policy/toolchains.hpp"
#include "runner/as_user/project.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

namespace pi_agent {

namespace {

// No path is in both lists.
Finding finding_of(const OpenedHome &home, const std::string &path)
{
    const auto found =
        std::find_if(home.directories.begin(), home.directories.end(), [&](const HomeDirectory &one) { return one.path == path; });
    if (found == home.directories.end()) return {Finding::Kind::unusable, ""};
    return {found->problem.empty() ? Finding::Kind::usable : Finding::Kind::unusable, found->problem};
}

std::vector<ExplainedHomeDirectory> explained(const std::vector<PolicyPath> &paths,
                                              const std::function<Finding(const std::string &path)> &finding)
{
    std::vector<ExplainedHomeDirectory> directories;
    for (const auto &path : paths)
        directories.push_back({path.path, place_in_agent_home(path.path), finding(path.path)});
    return directories;
}

const char *state_of(const Finding &finding)
{
    if (finding.kind == Finding::Kind::unknown) return "not verified";
    return finding.kind == Finding::Kind::usable ? "shown" : finding.text.empty() ? "missing" : "not shown";
}

std::string name_of(const ExplainedHomeDirectory &one)
{
    const std::string path = "~/" + escape_for_display(one.path);
    return one.inside == one.path ? path : path + " (inside: ~/" + escape_for_display(one.inside) + ")";
}

std::string names_of(const std::vector<ExplainedHomeDirectory> &directories, const std::string &state)
{
    std::string names;
    for (const auto &one : directories)
        if (state_of(one.finding) == state) names += (names.empty() ? "" : ", ") + name_of(one);
    return names;
}

std::string text_of(const std::vector<ExplainedHomeDirectory> &directories, const char *label, const char *what)
{
    if (directories.empty()) return fmt::format("{} none of the user's home\n", label);
    const std::string shown = names_of(directories, "shown");
    std::string text = fmt::format("{} {}: {}\n", label, what, shown.empty() ? "none that is there" : shown);
    if (const std::string missing = names_of(directories, "missing"); !missing.empty())
        text += fmt::format("          missing: {}\n", missing);
    if (const std::string unknown = names_of(directories, "not verified"); !unknown.empty())
        text += fmt::format("          not verified ({}): {}\n", directories.front().finding.text, unknown);
    for (const auto &one : directories)
        if (state_of(one.finding) == std::string("not shown"))
            text += fmt::format("          not shown: {}: {}\n", name_of(one), one.finding.text);
    return text;
}

nlohmann::json json_of(const std::vector<ExplainedHomeDirectory> &directories)
{
    nlohmann::json list = nlohmann::json::array();
    for (const auto &one : directories) {
        nlohmann::json entry = {{"path", "~/" + one.path}, {"inside", "~/" + one.inside}, {"state", state_of(one.finding)}};
        if (!one.finding.text.empty()) entry["reason"] = one.finding.text;
        list.push_back(std::move(entry));
    }
    return list;
}

} // namespace

ExplainedToolchains explain_toolchains(const ToolchainsPolicy &policy, const Observer &observer, const Account &user)
{
    std::optional<OpenedHome> home;
    std::string unknown = "only root or " + user.name + " can verify this";
    try {
        if (observer.can_look_for(user)) home = observer.find_home_directories(policy, user);
    } catch (const Failure &failure) { // a file system that does not answer is a finding too
        unknown = failure.what();
    }
    const auto finding = [&](const std::string &path) { return home ? finding_of(*home, path) : Finding{Finding::Kind::unknown, unknown}; };
    return {explained(policy.readable.paths, finding), explained(policy.caches.paths, finding)};
}

std::string to_text(const ExplainedToolchains &toolchains)
{
    return text_of(toolchains.readable, "readable:", "read-only, of the user's home") +
           text_of(toolchains.caches, "caches:  ", "of the user's home, and what a session changes in them goes with it");
}

nlohmann::json to_json(const ExplainedToolchains &toolchains)
{
    return {{"readable", json_of(toolchains.readable)}, {"caches", json_of(toolchains.caches)}};
}

} // namespace pi_agent
