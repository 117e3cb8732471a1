// Reading and writing MAJOR.MINOR.PATCH, in one form only.
#include "common/base/version.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"

#include <charconv>
#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr std::size_t digit_limit = 9;

std::optional<std::uint32_t> parse_number(std::string_view digits) noexcept
{
    if (digits.empty() || digits.size() > digit_limit || (digits.size() > 1 && digits.front() == '0')) return std::nullopt;
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    std::uint32_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

} // namespace

std::optional<Version> parse_version(std::string_view text) noexcept
{
    Version version{};
    for (std::size_t index = 0; index < version.size(); ++index) {
        const bool is_last = index + 1 == version.size();
        const std::size_t end = is_last ? text.size() : text.find('.');
        if (end == std::string_view::npos) return std::nullopt;
        const std::optional<std::uint32_t> number = parse_number(text.substr(0, end));
        if (!number) return std::nullopt;
        version[index] = *number;
        text.remove_prefix(is_last ? end : end + 1);
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
