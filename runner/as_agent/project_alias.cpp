// Naming a project in the agent's home.
#include "runner/as_agent/project_alias.hpp"

#include "common/base/error.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/root/errand/child.hpp"
#include "runner/wire/answer.hpp"
#include "runner/wire/beneath.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

const char *const alias_directory = "projects";

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

bool leads_to(FdRef directory, const std::string &name, const std::string &target)
{
    std::array<char, PATH_MAX> text{};
    const ssize_t length = readlinkat(directory.get(), name.c_str(), text.data(), text.size());
    return length >= 0 && std::string(text.data(), static_cast<std::size_t>(length)) == target;
}

} // namespace

std::string alias_of(const std::string &project_path)
{
    std::string name = split_last(project_path).second.substr(0, name_limit);
    std::replace_if(
        name.begin(), name.end(), [](char byte) { return !is_harmless(byte); }, '_');
    std::string alias(name.empty() || name[0] == '.' || name[0] == '-' ? 1 : 0, '_');
    std::array<char, 16> hash{};
    std::snprintf(hash.data(), hash.size(), "-%08x", folded_hash(project_path));
    return alias.append(name).append(hash.data());
}

std::string link_alias(const AsUser & /*agent*/, FdRef home, const std::string &alias, const std::string &target)
{
    const std::string shown = std::string("~/") + alias_directory + "/" + alias;
    if (mkdirat(home.get(), alias_directory, 0700) != 0 && errno != EEXIST) throw_errno(std::string("making ~/") + alias_directory);
    const UniqueFd directory = find_beneath(home, alias_directory, O_RDONLY | O_DIRECTORY);
    if (!directory) return std::string("~/") + alias_directory + " of the agent's home is no directory that it may enter";
    if (leads_to(directory, alias, target)) return {};
    // What an earlier session with `paths: alias` left is an empty directory.
    if (unlinkat(directory.get(), alias.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT && errno != ENOTDIR)
        return shown + " of the agent's home is a directory of its own";
    if (symlinkat(target.c_str(), directory.get(), alias.c_str()) != 0) {
        if (errno == EEXIST) return shown + " of the agent's home is something else";
        throw_errno("making the link " + shown);
    }
    return {};
}

void make_alias_directory(const AsRoot &root, const Account &agent, FdRef home, const std::string &alias)
{
    Child child(root, "maker of the project's place", agent, {home.get()}, [&](const AsUser & /*self*/, FdRef channel) {
        fault_point("making-place");
        ensure_directory_beneath(home, std::string(alias_directory) + "/" + alias);
        send_answer(channel, "");
    });
    child.receive();
}

} // namespace pi_agent
