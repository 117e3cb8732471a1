// Root's half of `protect` and `mask`: the mounts that keep the agent from changing what git executes, and from what it may not read.
#pragma once

#include "common/host/account.hpp"
#include "common/policy/policy.hpp"
#include "runner/as_user/protected_paths.hpp"
#include "runner/plan/git_config.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/root/errand/project.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

class ProjectGuards {
public:
    // Starts the search, and does not wait for it before wait_for_search() or apply().
    ProjectGuards(const AsRoot &root, const Account &user, const OpenedProject &project, const ProjectsPolicy &policy);

    // Mounts over what is protected and masked in one tree of the project. `mount` is already attached there, with what hides its
    // submounts. Throws what the search found wrong, and Failure(system_failure) when the tree changes meanwhile.
    void apply(const AsRoot &root, const SessionDirectory &session, const ShownTree &tree, const DetachedMount &mount);
    // Mounts in the launcher's mount table, before the agent starts: protected paths of submodules and worktrees. There may be thousands,
    // and systemd makes a unit for each mount of the host. Of these only what git replaces in everyday work is among the host's mounts.
    void apply_inside(const AsRoot &root, FdRef mount_namespace, const std::string &project_path);
    // Whether there are such paths.
    [[nodiscard]] bool has_inner() const noexcept { return !inner_.empty(); }
    // Waits for the search, as apply() does, and throws what it found wrong. Calls `meanwhile` now and then.
    void wait_for_search(const std::function<void()> &meanwhile);

    // Call it when everything is mounted over: ends the child, which takes a moment.
    void end_search() noexcept { child_.reset(); }

    // After apply(): what is read-only (without the directories above it), and what the user should know.
    [[nodiscard]] const std::vector<std::string> &read_only() const noexcept { return read_only_; }
    [[nodiscard]] bool has_masks() const noexcept { return has_masks_; }
    [[nodiscard]] RepositoryConfig repository_config() const;
    [[nodiscard]] const std::vector<std::string> &notices() const noexcept { return notices_; }
    // Which git commands the user can run outside only when the session is over.
    [[nodiscard]] std::vector<std::string> waiting_outside() const;

private:
    struct Inner {
        const ShownTree *tree;
        UniqueFd top; // among the host's mounts
        std::map<std::string, PointKind> points;
    };

    void record(const SessionDirectory &session, const ShownTree &tree, const std::vector<std::string> &placeholders);
    void keep_for_later(const ShownTree &tree, const DetachedMount &mount, std::map<std::string, PointKind> points);

    Uid user_;
    std::vector<Inner> inner_;
    std::vector<std::string> paths_;  // of the trees, the project first
    std::vector<std::string> closed_; // roots that the session does not see
    std::optional<Child> child_;
    std::vector<GuardedPaths> found_; // of each tree
    std::size_t recorded_ = 0;
    std::vector<std::string> read_only_;
    bool has_masks_ = false;
    std::vector<std::string> notices_;
};

} // namespace pi_agent
