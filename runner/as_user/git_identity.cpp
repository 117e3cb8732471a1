// Asking git as the user.
#include "runner/as_user/git_identity.hpp"

#include "common/base/error.hpp"
#include "common/policy/policy_paths.hpp"
#include "runner/as_user/git_files.hpp"

#include <algorithm>

namespace pi_agent {

std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown)
{
    if (value.empty() || value == "*") return value;
    const std::string path = value.starts_with("~/") ? home + value.substr(1) : value;
    const bool and_below = path.ends_with("/*"); // git 2.46 and newer
    const std::string directory = without_trailing_slashes(and_below ? path.substr(0, path.size() - 1) : path);
    if (is_within(directory, shown) || (and_below && is_within(shown, directory))) return path;
    return std::nullopt;
}

FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline)
{
    FoundIdentity found;
    GitIdentity &identity = found.identity;
    GitFiles files(user, paths, home, deadline);
    try {
        // The second wins, as with git, which reads both.
        for (const char *name : {"/.config/git/config", "/.gitconfig"}) {
            for (auto &[key, value] : files.read(home + name)) {
                if (key == "user.name")
                    identity.name = std::move(value);
                else if (key == "user.email")
                    identity.email = std::move(value);
                else if (auto directory = safe_directory(value, home, shown))
                    identity.safe_directories.push_back(std::move(*directory));
            }
        }
    } catch (const Failure &failure) {
        found = {{}, failure.what()};
    }
    found.notices = files.notices();
    found.notices.resize(std::min(found.notices.size(), git_notice_limit));
    return found;
}

} // namespace pi_agent
