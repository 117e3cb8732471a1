// The user's files of git's settings, and what they include. Git reads each file by itself, and follows no include: one that lies where
// agents write is handed to it open, so that it leads nowhere else (common/decide/user_paths.hpp).
#pragma once

#include "common/base/channel.hpp"
#include "common/decide/user_paths.hpp"
#include "common/host/identity.hpp"

#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

constexpr int git_patience_seconds = 2;

class GitFiles {
public:
    // In the current directory, for which conditional includes count.
    GitFiles(const AsUser &user, const UserPaths &paths, std::string home, Deadline deadline)
        : user_(user), paths_(paths), home_(std::move(home)), deadline_(deadline)
    {
    }

    // user.name, user.email and safe.directory of an absolute path, in git's order; nothing where it is missing. Throws
    // Failure(configuration) with what is wrong with it.
    std::vector<std::pair<std::string, std::string>> read(const std::string &file);

    // What agents can have made unusable, and what is wrong with the repository at hand, each as a text.
    [[nodiscard]] const std::vector<std::string> &notices() const noexcept { return notices_; }

private:
    using Settings = std::vector<std::pair<std::string, std::string>>;

    void read_into(const std::string &file, const UserPlacePtr &from, Settings &settings, int depth);
    Settings ask(const std::string &file, FdRef descriptor);
    void include(const std::string &file, const UserPlacePtr &place, const std::string &path, Settings &settings, int depth);
    bool holds(const std::string &condition, const std::string &file);

    const AsUser &user_;
    const UserPaths &paths_;
    std::string home_;
    Deadline deadline_;
    std::vector<std::string> notices_;
};

} // namespace pi_agent
