// Reading AGENT@VERSION, and comparing versions as npm does.
#include "common/agents/agent_request.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <array>
#include <cstdint>

namespace pi_agent {

namespace {

constexpr std::size_t longest_version = 64;
constexpr std::size_t longest_package = 128;
constexpr std::string_view version_digits = "0123456789";

bool starts_with_letter(std::string_view text)
{
    return !text.empty() && is_made_of(text.substr(0, 1), "") && version_digits.find(text[0]) == std::string_view::npos;
}

bool is_number(std::string_view text)
{
    return !text.empty() && text.size() <= 9 && text.find_first_not_of(version_digits) == std::string_view::npos &&
           (text.size() == 1 || text[0] != '0');
}

// The parts between dots, none of them empty.
bool is_dotted(std::string_view text)
{
    if (text.empty() || text.back() == '.' || !is_made_of(text, ".-")) return false;
    const auto parts = split(text, '.');
    return std::none_of(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); });
}

struct VersionParts {
    std::array<std::uint32_t, 3> numbers{};
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
    const auto numbers = split(text, '.');
    if (numbers.size() != 3 || text.back() == '.') return std::nullopt;
    for (std::size_t index = 0; index < numbers.size(); ++index) {
        if (!is_number(numbers[index])) return std::nullopt;
        parts.numbers[index] = to_number<std::uint32_t>(numbers[index]).value_or(0);
    }
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

bool is_package_name(std::string_view text) noexcept
{
    if (text.size() > longest_package) return false;
    if (!text.empty() && text[0] == '@') {
        const auto slash = text.find('/');
        if (slash == std::string_view::npos || slash == 1 || text[1] == '.' || !is_made_of(text.substr(1, slash - 1), "._-")) return false;
        text = text.substr(slash + 1);
    }
    return !text.empty() && text[0] != '.' && text[0] != '_' && is_made_of(text, "._-");
}

bool is_path_in_package(std::string_view text) noexcept
{
    return text.size() <= 256 && is_made_of(text, "/._@+-") && !has_odd_component(text) && !text.empty() && text[0] != '-';
}

} // namespace pi_agent
