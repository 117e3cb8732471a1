// From where git, editors, shells and package managers take commands, and which part of each file matters.
#pragma once

#include "wrapper/shown_tree.hpp"

namespace pi_agent {

// Files from which editors, shells and package managers take commands by their name, and which part of each matters. `name`: an entry of a
// visited directory, of any type. Cheap for other names.
void mark_file_doors(Marker &marker, const std::string &directory, std::string_view name);

// What npm would run from a package.json: text for comparison, and whether a plain `npm install` runs some of it. Empty text: nothing.
struct PackageScripts {
    std::string text;
    bool run_at_install = false;
};
PackageScripts read_package_scripts(std::string_view json);

// Where git takes programs from in one repository: hooks, configuration, attributes, submodules, worktrees, and files that lead elsewhere.
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
