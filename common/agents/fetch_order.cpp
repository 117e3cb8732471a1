// AGENT@VERSION, the order as JSON, and the answers as lines.
#include "common/agents/fetch_order.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/base/version.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

// Reading AGENT@VERSION, and comparing versions as npm does.

namespace {

constexpr std::size_t longest_version = 64;
constexpr std::string_view version_digits = "0123456789";

bool starts_with_letter(std::string_view text)
{
    return !text.empty() && is_made_of(text.substr(0, 1), "") && version_digits.find(text[0]) == std::string_view::npos;
}

// The parts between dots, none of them empty.
bool is_dotted(std::string_view text)
{
    if (text.empty() || text.back() == '.' || !is_made_of(text, ".-")) return false;
    const auto parts = split(text, '.');
    return std::none_of(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); });
}

struct VersionParts {
    Version numbers{};
    std::string_view prerelease;
};

std::optional<VersionParts> parts_of_version(std::string_view text)
{
    if (text.size() > longest_version) return std::nullopt;
    VersionParts parts;
    if (const auto plus = text.find('+'); plus != std::string_view::npos) {
        if (!is_dotted(text.substr(plus + 1))) return std::nullopt;
        text = text.substr(0, plus);
    }
    if (const auto dash = text.find('-'); dash != std::string_view::npos) {
        parts.prerelease = text.substr(dash + 1);
        if (!is_dotted(parts.prerelease)) return std::nullopt;
        text = text.substr(0, dash);
    }
    const auto numbers = parse_version(text);
    if (!numbers) return std::nullopt;
    parts.numbers = *numbers;
    return parts;
}

// Numbers come before words, and are compared as numbers: by their length first, for they may be long.
bool is_lower_part(std::string_view one, std::string_view other)
{
    const bool first = one.find_first_not_of(version_digits) == std::string_view::npos;
    const bool second = other.find_first_not_of(version_digits) == std::string_view::npos;
    if (first != second) return first;
    if (first && one.size() != other.size()) return one.size() < other.size();
    return one < other;
}

} // namespace

AgentRequest read_agent_request(std::string_view text)
{
    AgentRequest request{"pi", ""};
    if (text.empty()) return request;
    const auto at = text.find('@');
    request.agent = text.substr(0, at);
    if (at != std::string_view::npos) request.version = text.substr(at + 1);
    if (!starts_with_letter(request.agent) || !is_made_of(request.agent, "-") || request.agent.size() > 32)
        throw Failure(ExitStatus::usage, escape_for_display(text) + " names no agent; say AGENT or AGENT@VERSION, for example pi");
    if (at != std::string_view::npos && !is_package_version(request.version) && !is_version_tag(request.version))
        throw Failure(ExitStatus::usage, escape_for_display(request.version) +
                                             " is not a version; say one in full, for example 1.2.3, or a tag such as latest");
    return request;
}

bool is_package_version(std::string_view text) noexcept
{
    return parts_of_version(text).has_value();
}

bool is_version_tag(std::string_view text) noexcept
{
    return text.size() <= longest_version && starts_with_letter(text) && is_made_of(text, "._-");
}

bool is_older_version(std::string_view one, std::string_view other) noexcept
{
    const auto first = parts_of_version(one);
    const auto second = parts_of_version(other);
    if (!first || !second) return false;
    if (first->numbers != second->numbers) return first->numbers < second->numbers;
    if (first->prerelease.empty() || second->prerelease.empty()) return !first->prerelease.empty() && second->prerelease.empty();
    const auto before = split(first->prerelease, '.');
    const auto after = split(second->prerelease, '.');
    return std::lexicographical_compare(before.begin(), before.end(), after.begin(), after.end(), is_lower_part);
}

bool is_path_in_package(std::string_view text) noexcept
{
    return text.size() <= 256 && is_made_of(text, "/._@+-") && !has_odd_component(text) && !text.empty() && text[0] != '-';
}

// The order as JSON, and the answers as lines.

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PinnedPackage, package, version, integrity)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FetchOrder, registry, settings, certificates, node, npm, package, command, platform_package, version,
                                   manifest, lock)

namespace {

constexpr std::size_t longest_fetch_text = 2000;

// One line, without tabs.
std::string flat_text(const std::string &text)
{
    std::string flat = text.substr(0, longest_fetch_text);
    for (char &byte : flat)
        if (byte == '\n' || byte == '\t' || byte == '\r') byte = ' ';
    return flat;
}

} // namespace

std::string write_fetch_order(const FetchOrder &order)
{
    return nlohmann::json(order).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

FetchOrder read_fetch_order(std::string_view json)
{
    try {
        return nlohmann::json::parse(json);
    } catch (const nlohmann::json::exception &failure) {
        throw Failure(ExitStatus::internal, std::string("this is not an order of pi-agentctl: ") + failure.what());
    }
}

std::string write_fetch_line(const FetchLine &line)
{
    switch (line.kind) {
    case FetchLine::Kind::step:
        return "step\t" + flat_text(line.text) + "\n";
    case FetchLine::Kind::size:
        return "size\t" + std::to_string(line.got) + "\t" + std::to_string(line.all) + "\n";
    case FetchLine::Kind::failure:
        return "failure\t" + flat_text(line.text) + "\n";
    case FetchLine::Kind::done:
        return "done\t" + flat_text(line.version) + "\t" + flat_text(line.program) + "\n";
    }
    return "";
}

std::optional<FetchLine> read_fetch_line(std::string_view line)
{
    const auto fields = split(line, '\t');
    if (fields.size() < 2 || line.size() > 2 * longest_fetch_text) return std::nullopt;
    using Kind = FetchLine::Kind;
    const auto kind = fields[0];
    if (fields.size() == 2 && (kind == "step" || kind == "failure"))
        return FetchLine{.kind = kind == "step" ? Kind::step : Kind::failure, .text = std::string(fields[1])};
    if (fields.size() != 3) return std::nullopt;
    const auto got = to_number<std::uint64_t>(fields[1]);
    const auto all = to_number<std::uint64_t>(fields[2]);
    if (kind == "size" && got && all) return FetchLine{.kind = Kind::size, .got = *got, .all = *all};
    if (kind != "done" || !is_package_version(fields[1]) || !is_path_in_package(fields[2])) return std::nullopt;
    return FetchLine{.kind = Kind::done, .version = std::string(fields[1]), .program = std::string(fields[2])};
}

} // namespace pi_agent
