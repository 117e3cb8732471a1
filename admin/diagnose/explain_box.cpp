// The sandbox of a session as text for people and as JSON for programs.
#include "admin/diagnose/explain.hpp"

#include "common/base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

std::string scratch_text(ScratchKind scratch)
{
    const bool in_memory = scratch == ScratchKind::tmpfs;
    return fmt::format("scratch:  {} (scratch: {}): /tmp and /var/tmp of each session, TMPDIR={} there; removed when it ends\n",
                       in_memory ? fmt::format("in memory, at most {} of it", scratch_memory_share) : "on the disk of the state directory",
                       in_memory ? "tmpfs" : "disk", tmpdir_of("ID"));
}

std::string joined_safely(const std::vector<std::string> &texts)
{
    std::string text;
    for (const auto &one : texts)
        text += (text.empty() ? "" : ", ") + escape_for_display(one);
    return text;
}

std::vector<std::string> texts_of(const std::vector<PolicyPath> &paths)
{
    std::vector<std::string> texts;
    for (const auto &path : paths)
        texts.push_back(path.path);
    return texts;
}

std::vector<std::string> texts_of(const std::vector<IpRange> &ranges)
{
    std::vector<std::string> texts;
    for (const auto &range : ranges)
        texts.push_back(to_string(range));
    return texts;
}

// What the policy names, or, when the host could be asked, what that comes to.
std::vector<std::string> shown_besides(const Explanation &explanation)
{
    if (const auto *view = std::get_if<HostView>(&explanation.shown)) return {view->trees.begin(), view->trees.end()};
    return texts_of(explanation.policy.view_paths);
}

std::string view_text(const Explanation &explanation)
{
    const auto besides = shown_besides(explanation);
    const auto *const etc = explanation.policy.view == View::minimal ? "of /etc what programs need" : "/etc";
    std::string text =
        fmt::format("view:     {}: read-only /usr, /opt, {}{}{}\n", explanation.policy.view == View::minimal ? "minimal" : "host", etc,
                    besides.empty() ? "" : "; besides: ", joined_safely(besides));
    if (const auto *failure = std::get_if<Failure>(&explanation.shown))
        text += fmt::format("          no start is possible: {}\n", failure->what());
    return text;
}

nlohmann::json view_json(const Explanation &explanation)
{
    nlohmann::json json = {{"mode", explanation.policy.view == View::minimal ? "minimal" : "host"},
                           {"besides", shown_besides(explanation)}};
    if (const auto *failure = std::get_if<Failure>(&explanation.shown)) json["reason"] = failure->what();
    return json;
}

std::string told_text(const Explanation &explanation)
{
    return fmt::format("git:      {}\nnotes:    {}\n",
                       explanation.policy.git_identity ? "commits carry the user's own user.name and user.email (git_identity)"
                                                       : "commits do not carry the user's name (git_identity: false)",
                       explanation.policy.box_notes ? "the agent is told about its sandbox in /AGENTS.md (box_notes)"
                                                    : "the agent is not told about its sandbox (box_notes: false)");
}

std::string tools_text(const Explanation &explanation)
{
    std::string text;
    for (const auto &missing : explanation.missing_tools)
        text += fmt::format("tools:    {}\n", name_package(missing));
    return text;
}

std::string network_text(const NetworkPolicy &network)
{
    const std::string where = to_string(network.where);
    switch (network.mode) {
    case NetworkMode::full:
        break;
    case NetworkMode::none:
        return fmt::format("network:  none ({}): a loopback of its own, which nobody else reaches;\n"
                           "          its model, too, is out of reach unless it runs in the session\n",
                           where);
    case NetworkMode::loopback:
        return fmt::format("network:  loopback ({}): {} of this host, in both directions;\n"
                           "          a proxy, a name server or a model that listens there is reached\n",
                           where, joined_safely(texts_of(network.allowed)));
    case NetworkMode::listed:
        return fmt::format("network:  only {} ({}), in both directions;\n"
                           "          name servers, loopback and the model's host only as far as they are among them\n",
                           joined_safely(texts_of(network.allowed)), where);
    }
    return "network:  full: the host's, without restriction (network)\n";
}

nlohmann::json network_json(const NetworkPolicy &network)
{
    constexpr const char *modes[] = {"full", "loopback", "none", "list"};
    return {{"mode", modes[static_cast<int>(network.mode)]}, {"allowed", texts_of(network.allowed)}};
}

std::string projects_text(const ProjectsPolicy &projects)
{
    std::string text = "projects: ";
    text +=
        projects.scope == ProjectScope::root ? "all of the root that holds the directory" : "only the repository that holds the directory";
    text += projects.paths == ProjectPaths::host ? ", at its path on this host\n" : ", below ~/projects of the agent's home\n";
    if (!projects.protect)
        text += "          read-only in it: what git executes, in the repository that holds the directory;\n"
                "          while a session runs, git commands outside that write .git/config fail: \"Device or resource busy\"\n";
    else if (!projects.protect->empty())
        text += "          read-only in it: " + joined_safely(texts_of(*projects.protect)) + "\n";
    if (!projects.mask.empty()) text += "          unreadable in it: " + joined_safely(texts_of(projects.mask)) + "\n";
    return text;
}

nlohmann::json projects_json(const ProjectsPolicy &projects)
{
    return {{"paths", projects.paths == ProjectPaths::host ? "host" : "alias"},
            {"scope", projects.scope == ProjectScope::root ? "root" : "project"},
            {"protect", projects.protect ? nlohmann::json(texts_of(*projects.protect)) : nlohmann::json("default")},
            {"mask", texts_of(projects.mask)},
            {"aftermath", projects.aftermath}};
}

} // namespace

std::string box_text(const Explanation &explanation)
{
    return scratch_text(explanation.policy.scratch) + view_text(explanation) + projects_text(explanation.policy.projects) +
           to_text(explanation.toolchains) + network_text(explanation.policy.network) + to_text(explanation.limits) +
           told_text(explanation) + tools_text(explanation);
}

void add_box(const Explanation &explanation, nlohmann::json &json)
{
    json["view"] = view_json(explanation);
    json["missing_tools"] = explanation.missing_tools;
    json["git_identity"] = explanation.policy.git_identity;
    json["box_notes"] = explanation.policy.box_notes;
    json["projects"] = projects_json(explanation.policy.projects);
    json["toolchains"] = to_json(explanation.toolchains);
    json["network"] = network_json(explanation.policy.network);
    json["limits"] = to_json(explanation.limits);
    json["scratch"] = explanation.policy.scratch == ScratchKind::tmpfs ? "tmpfs" : "disk";
}

} // namespace pi_agent
