// Root's half of `protect` and `mask`: the mounts that keep the agent from what git executes, and from what it may not read.
#pragma once

#include "common/account.hpp"
#include "common/policy.hpp"
#include "runner/child.hpp"
#include "runner/git_config.hpp"
#include "runner/mounts.hpp"
#include "runner/project.hpp"
#include "runner/protected_paths.hpp"
#include "runner/session_directory.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

enum class PointKind { prefix, read_only };

// Every mount point that these paths need, parents before what is in them: the paths read-only, and each directory above one as it is,
// because a directory that is no mount point can be renamed, and another put in its place. What lies in a read-only one needs none.
// Throws Failure(limit) beyond guard_limit.
std::map<std::string, PointKind> plan_points(const std::vector<std::string> &read_only);

class ProjectGuards {
public:
    // Starts the search. Nothing is waited for until apply().
    ProjectGuards(const AsRoot &root, const Account &user, const OpenedProject &project, const ProjectsPolicy &policy);

    // Mounts over what is protected and masked. `project` is shown somewhere already, with what hides its submounts. Throws what the search
    // found wrong, and Failure(system_failure) when the project changes meanwhile.
    void apply(const AsRoot &root, const SessionDirectory &session, const DetachedMount &project);

    // Once applied: what is read-only (without what is above it), what is masked, and what the user should know.
    [[nodiscard]] const std::vector<std::string> &read_only() const noexcept { return found_.read_only; }
    [[nodiscard]] const std::vector<std::string> &masked() const noexcept { return found_.masked; }
    [[nodiscard]] RepositoryConfig repository_config() const;
    [[nodiscard]] const std::vector<std::string> &notices() const noexcept { return found_.notices; }

private:
    std::vector<std::string> make_placeholders();
    void mount_points(const AsRoot &root, const DetachedMount &project, const std::vector<std::string> &targets);
    void mount_masks(const AsRoot &root, const SessionDirectory &session, const DetachedMount &project);
    void put(const AsRoot &root, const DetachedMount &mount, FdRef target, const std::string &path);
    void require_in_place(const DetachedMount &project) const;

    std::string root_path_;
    std::optional<Child> child_;
    GuardedPaths found_;
    std::map<std::string, std::uint64_t> mounted_; // path, id of the mount there
};

} // namespace pi_agent
