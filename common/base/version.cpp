// Reading and writing MAJOR.MINOR.PATCH, in one form only.
#include "common/base/version.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <fmt/format.h>

namespace pi_agent {

std::optional<Version> parse_version(std::string_view text) noexcept
{
    constexpr std::size_t digit_limit = 9;
    const auto parts = split(text, '.');
    Version version{};
    if (parts.size() != version.size() || text.back() == '.') return std::nullopt;
    for (std::size_t index = 0; index < version.size(); ++index) {
        const auto part = parts[index];
        const bool is_plain = part.size() <= digit_limit && (part.size() == 1 || !part.starts_with('0'));
        const auto number = is_plain ? to_number<std::uint32_t>(part) : std::nullopt;
        if (!number) return std::nullopt;
        version[index] = *number;
    }
    return version;
}

std::string to_string(const Version &version)
{
    return fmt::format("{}.{}.{}", version[0], version[1], version[2]);
}

Version running_version()
{
    const std::optional<Version> version = parse_version(build::version);
    if (!version) throw Failure(ExitStatus::internal, "this build has no version"); // meson.build refuses to make such a one
    return *version;
}

} // namespace pi_agent
