// How words and values are written in what is rendered: unit files, YAML, shell.
#include "admin/render/render_text.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace pi_agent {

namespace {

// Has no special meaning to shells and unit files.
bool is_plain(std::string_view text)
{
    return is_property_safe(text) && !text.empty();
}

std::string quoted_for_unit(const std::string &text, bool is_command)
{
    if (is_plain(text)) return text;
    std::string quoted = "\"";
    for (const char byte : text) {
        const auto value = static_cast<unsigned char>(byte);
        if (byte == '"' || byte == '\\')
            quoted.append(1, '\\').append(1, byte);
        else if (byte == '%' || (byte == '$' && is_command))
            quoted.append(2, byte);
        else if (value < 0x20 || value == 0x7f)
            quoted.append(fmt::format("\\x{:02x}", value));
        else
            quoted.append(1, byte);
    }
    return quoted + '"';
}

constexpr std::uint64_t bus_second = 1'000'000;

struct Renamed {
    const char *property;
    const char *key;
};
constexpr std::array renamed = {Renamed{"CPUQuotaPerSecUSec", "CPUQuota"}, Renamed{"RuntimeMaxUSec", "RuntimeMaxSec"},
                                Renamed{"TimeoutStopUSec", "TimeoutStopSec"}, Renamed{"MemoryMaxScale", "MemoryMax"}};

std::string key_of(const std::string &property)
{
    const auto *found = std::find_if(renamed.begin(), renamed.end(), [&](const Renamed &one) { return property == one.property; });
    return found == renamed.end() ? property : found->key;
}

// A share of all ones, as runner/plan/limits.hpp makes it of a percentage.
std::string percent_of(std::uint32_t share)
{
    return fmt::format("{}%", (std::uint64_t{share} * 100 + UINT32_MAX - 1) / UINT32_MAX);
}

std::string number_text(const std::string &property, std::uint64_t number)
{
    if (property == "RestrictNamespaces" && number == 0) return "yes"; // of no kind at all
    if ((property == "CapabilityBoundingSet" || property == "AmbientCapabilities") && number == 0) return "";
    if (property == "CPUQuotaPerSecUSec") return fmt::format("{}%", number / (bus_second / 100));
    if (property == "RuntimeMaxUSec" || property == "TimeoutStopUSec") return fmt::format("{}s", number / bus_second);
    return fmt::format("{}", number);
}

struct ValueLines {
    const std::string &property;

    [[nodiscard]] std::string line(const std::string &value) const { return key_of(property) + "=" + value + "\n"; }

    std::string operator()(bool value) const { return line(value ? "yes" : "no"); }
    std::string operator()(std::uint32_t value) const
    {
        return line(property == "UMask" ? fmt::format("{:04o}", value) : percent_of(value));
    }
    std::string operator()(std::uint64_t value) const { return line(number_text(property, value)); }
    std::string operator()(const SignedNumber &value) const { return line(fmt::format("{}", value.value)); }
    std::string operator()(const std::string &value) const { return line(value); }
    std::string operator()(const std::vector<std::string> &values) const { return line(fmt::format("{}", fmt::join(values, " "))); }
    std::string operator()(const NameFilter &filter) const
    {
        return line((filter.allow ? "" : "~") + fmt::format("{}", fmt::join(filter.names, " ")));
    }
    std::string operator()(const BindList &list) const
    {
        std::string text;
        for (const auto &bind : list.binds)
            text += line(bind.source == bind.target ? bind.source : bind.source + ":" + bind.target + ":norbind");
        return text;
    }
    std::string operator()(const TemporaryFileSystems &filesystems) const
    {
        std::string text;
        for (const auto &[place, options] : filesystems.entries)
            text += line(place + ":" + options);
        return text;
    }
    std::string operator()(const ExitStatuses &ends) const
    {
        return line(fmt::format("{} {}", fmt::join(ends.statuses, " "), fmt::join(ends.signals, " ")));
    }
    std::string operator()(const DeviceRules &rules) const
    {
        std::string text;
        for (const auto &node : rules.nodes)
            text += line(node + " rw");
        return text;
    }
    std::string operator()(const Command &command) const { return line(fmt::format("{}", fmt::join(command.arguments, " "))); }
    std::string operator()(const AddressRanges &ranges) const
    {
        std::vector<std::string> texts;
        for (const auto &range : ranges.ranges)
            texts.push_back(to_string(range));
        return line(fmt::format("{}", fmt::join(texts, " ")));
    }
};

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
std::vector<std::string> left_out(RenderTarget target, const RenderPlan &plan)
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
    const auto &limits = policy.limits;
    const bool is_job = target == RenderTarget::kubernetes;
    if (is_job && !limits.memory) lines.emplace_back("limits.memory: without an amount in the policy the Job has no limit");
    if (is_job && !limits.tasks)
        lines.emplace_back("limits.tasks: a node has the limit, or the Job is not limited (podPidsLimit of the kubelet)");
    if (!is_job && !limits.sessions) lines.emplace_back("limits.sessions: nobody counts a user's sessions");
    return lines;
}

} // namespace

std::string shell_word(const std::string &text)
{
    if (std::all_of(text.begin(), text.end(),
                    [](char byte) { return is_property_safe(std::string_view(&byte, 1)) || byte == ',' || byte == '+' || byte == '%'; }))
        return text.empty() ? "''" : text;
    std::string quoted = "'";
    for (const char byte : text)
        quoted += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
    return quoted + "'";
}

std::string unit_word(const std::string &text)
{
    return quoted_for_unit(text, false);
}

std::string exec_word(const std::string &text)
{
    return quoted_for_unit(text, true);
}

std::string kubernetes_word(const std::string &text)
{
    std::string quoted;
    for (const char byte : text)
        quoted.append(byte == '$' ? 2 : 1, byte);
    return quoted;
}

std::string head_of(RenderTarget target, const RenderPlan &plan, const std::vector<std::string> &more)
{
    std::string text =
        fmt::format("# pi-agent {}: what {} grants to {} in {}, for {}. Render it again when either changes.\n", build::version,
                    escape_for_display(plan.rules.entry), plan.user.name, escape_for_display(plan.directory), to_string(target));
    for (const auto &line : more)
        text += "# " + escape_for_display(line) + "\n";
    if (target == RenderTarget::slurm) return text;
    const auto lines = left_out(target, plan);
    if (!lines.empty()) text += "# Not in it, because the runner makes it at each start:\n";
    for (const auto &line : lines)
        text += "#   " + line + "\n";
    for (const auto &notice : plan.notices)
        text += "# Of the project: " + escape_for_display(notice) + "\n";
    return text;
}

std::string unit_file_lines(const UnitProperty &property)
{
    return std::visit(ValueLines{property.name}, property.value);
}

std::string to_yaml(const Json &data)
{
    YAML::Emitter emitter;
    write(emitter, data);
    return std::string(emitter.c_str()) + "\n";
}

} // namespace pi_agent
