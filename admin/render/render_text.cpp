// The text of a rendering: its head, and data as YAML.
#include "admin/render/render.hpp"

#include "common/base/build_settings.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <cctype>

namespace pi_agent {

namespace {

using Json = nlohmann::ordered_json;

// In every version of YAML that a reader may follow.
bool means_something_else(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
    constexpr std::array<std::string_view, 9> words = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
    return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_plain_in_yaml(const std::string &text)
{
    const auto is_letter = [](char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); };
    const auto is_harmless = [&](char byte) {
        return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '/' || byte == '.' || byte == '_' || byte == '-';
    };
    return !text.empty() && (is_letter(text[0]) || text[0] == '/') && std::all_of(text.begin(), text.end(), is_harmless) &&
           !means_something_else(text);
}

void write(YAML::Emitter &emitter, const Json &data)
{
    if (data.is_object()) {
        emitter << YAML::BeginMap;
        for (const auto &[key, value] : data.items()) {
            emitter << YAML::Key;
            write(emitter, Json(key));
            emitter << YAML::Value;
            write(emitter, value);
        }
        emitter << YAML::EndMap;
    } else if (data.is_array()) {
        emitter << YAML::BeginSeq;
        for (const auto &item : data)
            write(emitter, item);
        emitter << YAML::EndSeq;
    } else if (data.is_string()) {
        const auto text = data.get<std::string>();
        if (!is_plain_in_yaml(text)) emitter << YAML::DoubleQuoted;
        emitter << text;
    } else {
        emitter << data.dump(); // numbers, true, false and null are the same
    }
}

// What the runner makes again at each start, and a rendering does not have: one line each.
std::vector<std::string> left_out(const RenderPlan &plan)
{
    const auto is_default = [](const HomeDirectories &directories) {
        return std::any_of(directories.paths.begin(), directories.paths.end(), [](const PolicyPath &path) { return path.where.line == 0; });
    };
    const auto &policy = plan.policy;
    std::vector<std::string> lines;
    if (policy.git_identity) lines.emplace_back("git_identity: commits do not carry the user's name");
    if (policy.box_notes) lines.emplace_back("box_notes: the agent is not told about its sandbox");
    if (is_default(policy.toolchains.readable)) lines.emplace_back("toolchains.readable: default");
    if (is_default(policy.toolchains.caches)) lines.emplace_back("toolchains.caches: default");
    if (policy.projects.aftermath) lines.emplace_back("projects.aftermath: nobody tells what was left that runs code outside");
    if (!policy.projects.protect) lines.emplace_back("projects.protect: what git executes and does not exist yet can be made");
    if (!policy.limits.memory) lines.emplace_back("limits.memory: without an amount in the policy the Job has no limit");
    lines.emplace_back("limits.tasks: a node has the limit, or the Job is not limited (podPidsLimit of the kubelet)");
    return lines;
}

} // namespace

std::string kubernetes_word(const std::string &text)
{
    std::string quoted;
    for (const char byte : text)
        quoted.append(byte == '$' ? 2 : 1, byte);
    return quoted;
}

std::string head_of(const RenderPlan &plan, const std::vector<std::string> &more)
{
    std::string text =
        fmt::format("# pi-agent {}: what {} grants to {} in {}, for kubernetes. Render it again when either changes.\n", build::version,
                    escape_for_display(plan.rules.entry), plan.user.name, escape_for_display(plan.directory));
    for (const auto &line : more)
        text += "# " + escape_for_display(line) + "\n";
    const auto lines = left_out(plan);
    if (!lines.empty()) text += "# Not in it, because the runner makes it at each start:\n";
    for (const auto &line : lines)
        text += "#   " + line + "\n";
    for (const auto &notice : plan.notices)
        text += "# Of the project: " + escape_for_display(notice) + "\n";
    return text;
}

std::string to_yaml(const Json &data)
{
    YAML::Emitter emitter;
    write(emitter, data);
    return std::string(emitter.c_str()) + "\n";
}

} // namespace pi_agent
