// Making a harmless name of any path.
#include "runner/plan/project_alias.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace pi_agent {

namespace {

constexpr std::size_t name_limit = 64;

std::uint32_t folded_hash(const std::string &text)
{
    std::uint64_t hash = 14695981039346656037U;
    for (const char byte : text)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
    return static_cast<std::uint32_t>(hash ^ (hash >> 32U));
}

bool is_harmless(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' ||
           byte == '-';
}

} // namespace

std::string alias_of(const std::string &project_path)
{
    std::string name = project_path.substr(project_path.rfind('/') + 1, name_limit); // npos + 1 is 0
    std::replace_if(
        name.begin(), name.end(), [](char byte) { return !is_harmless(byte); }, '_');
    std::string alias(name.empty() || name[0] == '.' || name[0] == '-' ? 1 : 0, '_');
    std::array<char, 16> hash{};
    std::snprintf(hash.data(), hash.size(), "-%08x", folded_hash(project_path));
    return alias.append(name).append(hash.data());
}

} // namespace pi_agent
