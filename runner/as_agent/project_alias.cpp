// Linking to a project in the agent's home.
#include "runner/as_agent/project_alias.hpp"

#include "common/base/error.hpp"
#include "common/host/beneath.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

bool leads_to(FdRef directory, const std::string &name, const std::string &target)
{
    std::array<char, PATH_MAX> text{};
    const ssize_t length = readlinkat(directory.get(), name.c_str(), text.data(), text.size());
    return length >= 0 && std::string(text.data(), static_cast<std::size_t>(length)) == target;
}

} // namespace

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

void make_alias_directory(const AsUser & /*agent*/, FdRef home, const std::string &alias)
{
    ensure_directory_beneath(home, std::string(alias_directory) + "/" + alias);
}

} // namespace pi_agent
