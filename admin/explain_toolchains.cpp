// Explaining toolchains and caches.
#include "admin/explain_toolchains.hpp"

#include "common/error.hpp"
#include "common/escape.hpp"
#include "common/toolchains.hpp"
#include "runner/home_directories.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

std::vector<ExplainedHomeDirectory> with_findings(const std::vector<PolicyPath> &paths, bool are_caches, const OpenedHome &home)
{
    std::vector<ExplainedHomeDirectory> explained;
    for (const auto &path : paths) {
        const auto found = std::find_if(home.directories.begin(), home.directories.end(),
                                        [&](const HomeDirectory &one) { return one.is_cache == are_caches && one.path == path.path; });
        const bool usable = found != home.directories.end() && found->problem.empty();
        explained.push_back(
            {path.path,
             place_in_agent_home(path.path),
             {usable ? Finding::Kind::usable : Finding::Kind::unusable, found == home.directories.end() ? "" : found->problem}});
    }
    return explained;
}

std::vector<ExplainedHomeDirectory> with_finding(const std::vector<PolicyPath> &paths, const Finding &finding)
{
    std::vector<ExplainedHomeDirectory> explained;
    for (const auto &path : paths)
        explained.push_back({path.path, place_in_agent_home(path.path), finding});
    return explained;
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
    Finding finding{Finding::Kind::unknown, "only root or " + user.name + " can verify this"};
    try {
        if (observer.can_look_for(user)) {
            const OpenedHome home = observer.find_home_directories(policy, user);
            return {with_findings(policy.readable.paths, false, home), with_findings(policy.caches.paths, true, home)};
        }
    } catch (const Failure &failure) { // a file system that does not answer is a finding too
        finding.text = failure.what();
    }
    return {with_finding(policy.readable.paths, finding), with_finding(policy.caches.paths, finding)};
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
