// Reads the user's own files of git's settings, with what they include, for this directory.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/git_settings.hpp"
#include "common/decide/user_paths.hpp"
#include "common/host/identity.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// The path that git reads in a setting's value: "~/" is the user's home.
std::string path_in_setting(const std::string &value, const std::string &home);

struct FoundGitSetting {
    GitSetting setting;
    std::string file;       // that holds it
    bool by_agents = false; // an agent can have written it
};

// The user's files of git's settings, and what they include. Git reads each file by itself, and follows no include. A file where agents
// write is handed to git open, so that it leads nowhere else (common/decide/user_paths.hpp).
class GitFiles {
public:
    // Reads for the current directory, to which conditional includes refer.
    GitFiles(const AsUser &user, const UserPaths &paths, const std::string &home, Deadline deadline)
        : user_(user), paths_(paths), home_(home), deadline_(deadline)
    {
    }

    // All settings of an absolute path, in git's order; empty where the file is missing. Throws Failure(configuration) with what is wrong
    // with it.
    std::vector<FoundGitSetting> read(const std::string &file);

    // Files that agents can have made unusable, and what is wrong with the repository at hand, each as a text.
    [[nodiscard]] const std::vector<std::string> &notices() const noexcept { return notices_; }

private:
    void read_into(const std::string &file, const UserPlacePtr &from, int depth);
    std::vector<GitSetting> ask(const std::string &file, FdRef descriptor);
    void include(const std::string &file, const UserPlacePtr &place, const std::string &path, int depth);
    bool holds(const std::string &condition, const std::string &file);

    const AsUser &user_;
    const UserPaths &paths_;
    const std::string &home_;
    Deadline deadline_;
    std::vector<FoundGitSetting> settings_;
    std::vector<std::string> notices_;
};

} // namespace pi_agent
