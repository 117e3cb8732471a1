// The session's root tree: what the agent sees as its file system, built by descriptor before the unit starts (design, launch step 6).
#pragma once

#include "common/host/account.hpp"
#include "common/host/namespaces.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/root/errand/project.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/session/state_directory.hpp"
#include "runner/root/view/kernel_files.hpp"
#include "runner/root/view/protect.hpp"

#include <string>
#include <vector>

namespace pi_agent {

struct RootTree {
    std::string path;                        // the unit's RootDirectory=
    std::vector<Bind> binds;                 // the unit's BindPaths= and BindReadOnlyPaths=
    std::vector<std::string> covered;        // mounts inside the project that are hidden, relative to it; any bytes
    std::string project_path;                // where the agent sees the project; any bytes
    std::vector<std::string> writable_roots; // that the unit names; none where the project lies in the agent's home
    std::vector<std::string> project_points; // where the project is mounted among the host's mounts, or what holds it
    std::vector<LateMount> late;             // what is put into the view when systemd has made it
    UniqueFd devpts;                         // root of the session's own devpts
    UniqueFd id_map;                         // of the user's directories
};

// What of the session directory (and what of ours) the unit shows where.
std::vector<Bind> tree_binds(const std::string &session_path, const std::string &home_path, const std::vector<Frame> &frames);

// Where the agent sees the project.
std::string place_of_project(const ShownTree &shown, ProjectPaths paths, const std::string &home_path);

// Why a project at `path` cannot be shown: a file system of this type; one that the kernel does not map, with its name_mount().
std::optional<std::string> problem_of_file_system(const std::string &path, const std::string &type);
std::string problem_of_mapping(const std::string &path, const std::string &mount_name);

// `guards`: of the project; what they find is mounted over, and what they know of it is there afterwards.
// `locked_settings`: what the agent gets as its settings.json and cannot change, or none; the home has such a file then.
RootTree build_root_tree(const AsRoot &root, const SessionDirectory &session, const HostView &view, const OpenedProject &project,
                         ProjectPaths paths, const StateDirectory &state, const Account &user, const Account &agent,
                         const UniqueFd &locked_settings, ProjectGuards &guards);

// Once the unit has ended: takes the project's mounts off the host. What is protected is a mount point there, which nobody can rename or
// replace, and whoever waited for the session may want to at once. best_effort: the session's removal does it as well.
void release_project(const AsRoot &root, const RootTree &tree) noexcept;

// What the user should know of it: the covered mounts, one text each.
std::vector<std::string> name_hidden(const RootTree &tree, const OpenedProject &project);

} // namespace pi_agent
