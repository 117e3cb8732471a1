// Where git takes programs from in one repository: hooks, configuration, attributes, submodules, worktrees, and files that lead elsewhere.
#pragma once

#include "wrapper/marker.hpp"

#include <optional>
#include <set>
#include <string>

namespace pi_agent {

class RepositoryDoors {
public:
    // `home`: the user's home, for `~/` in git's configuration.
    RepositoryDoors(Marker &marker, std::string home) : marker_(marker), home_(std::move(home)) {}

    // `directory` holds an entry `.git` of this type (readdir(3)).
    void worktree(const std::string &directory, unsigned char type_of_git);
    // A bare git directory, whatever its name.
    void git_directory(const std::string &directory) { repository(directory, std::nullopt, 0); }
    // A directory that git would use as a repository, without the name `.git`.
    void embedded(const std::string &directory);

private:
    void repository(const std::string &gitdir, const std::optional<std::string> &worktree, unsigned depth);
    std::string configuration(const std::string &path, unsigned depth);
    void hooks(const std::string &directory, unsigned depth);
    void hook_managers(const std::string &hooks, const std::string &worktree);
    void unfinished(const std::string &gitdir);
    void modules(const std::string &directory, unsigned depth);
    void linked_worktrees(const std::string &directory, unsigned depth);
    void git_file(const std::string &path, const std::string &directory);
    [[nodiscard]] std::optional<std::string> beneath(const std::string &text, const std::string &base) const;

    Marker &marker_;
    std::string home_;
    std::set<std::string> seen_;
};

} // namespace pi_agent
