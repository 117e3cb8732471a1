// What children of the agent's account do beside the config sync: in its home, with migration hooks, and with modes of directories.
#pragma once

#include "common/base/build_settings.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/wire/user_files.hpp"

namespace pi_agent {

// --- Reads single files of the host's /etc with the agent's rights. Whatever symlinks and owners lead to them on this host, the agent gets
// what its account may read there, and root opens none.

constexpr std::size_t host_file_limit = std::size_t{1} << 20U; // bytes of one; a larger one is left out, with a notice

// As the agent; `name` below /etc. A file that cannot be read counts as missing.
EtcFile read_etc_file(const std::string &name);

// As the agent: of the copies of packages' files those whose file in /etc has the size and the time of the copy. Root made the copies, so
// what this leaves out is not shown, and nothing else is shown instead.
UnchangedFiles find_unchanged_files();

// --- Makes the mount points in the agent's home for what it is shown of its user's home.

// As the agent; `places` relative to the home. Returns which of the first `looked_at` hold something of the agent's own, besides what
// `defaults` gives every home: the mounts hide that from now on.
std::vector<std::string> make_mount_points(FdRef agent_home, FdRef defaults, const std::vector<std::string> &places, std::size_t looked_at);

// --- The place of a project in the agent's home.

// For a process of the agent's account. Makes ~/projects/ALIAS a link to where the session shows the project. Leaves alone what the agent
// put there, and follows no link. Returns what keeps it from that, empty for nothing.
std::string link_alias(const AsUser &agent, FdRef home, const std::string &alias, const std::string &target);

// For a process of the agent's account, too. Makes it a directory, to mount on. A file there is renamed, a symlink removed.
void make_alias_directory(const AsUser &agent, FdRef home, const std::string &alias);

// --- Removing whole trees that an attacker has filled and may rearrange: by descriptor, following no link, with few descriptors at any
// depth.

// Removes `name` in `parent` and, for a directory, all beneath it. A missing entry is fine. The caller must own the tree: directories that
// lost their permissions get them back. Throws Failure when something stays.
void remove_beneath(FdRef parent, const std::string &name);

// Empties a directory in the same way. An entry that cannot be removed does not stop the removal of the others.
void remove_content_beneath(FdRef directory);

// --- Puts files into a project of disk quotas (FS_IOC_FSSETXATTR): one of them, or all of an agent's with the agent's rights.

// The project of an open file or directory, 0 without one. None where its file system knows no projects.
std::optional<std::uint32_t> project_of(FdRef file);

// True if what is made in this directory joins `project`, as the directory has.
bool passes_project_on(FdRef directory, std::uint32_t project);

// Makes a directory pass `project` on, and joins it. For its owner, and for root. Throws SystemFailure with `what`.
void join_project(FdRef directory, std::uint32_t project, const char *what);

// A file that has just joined, by its path below the top: joining sets its time of change, which others may know.
using Joined = std::function<void(const std::string &path, const struct stat &before, const struct stat &now)>;

// Joins each directory below `top` before it looks into it. From then on nothing enters that directory from outside of the project: the
// kernel refuses such renames and links (EXDEV). So nothing escapes this walk, whatever sessions of the same agent do meanwhile. Links,
// sockets and pipes stay outside, which have no content; so does what belongs to others. Sends its progress to `channel`. Throws Failure
// for a file that cannot join.
void join_tree(const AsUser &agent, FdRef top, std::uint32_t project, FdRef channel, const Joined &joined = {});

// --- How much disk a directory takes with all that is in it, measured with the rights of its owner.

// In bytes on disk. A file with several names counts once, other file systems and what the owner cannot read do not. Sends its progress to
// `channel`.
std::uint64_t measure_tree(const AsUser &owner, FdRef channel, FdRef top);

// --- Brings a home that another version of pi-agent used to this one: runs the migration hooks in between.

struct MigrationPlan {
    std::string directory = build::migrations_path; // of the hooks, which root owns
    Version version = running_version();            // the version to bring the home to
    int patience_seconds = 60;                      // for each hook
};

struct HomeToMigrate {
    FdRef directory;
    std::string path; // inside
};

// Selects the hooks, by their names VERSION-name.sh, that bring a home from `from` to `to` (from < VERSION <= to): by version, then by
// name. Throws Failure(configuration) for a name that begins with no version.
std::vector<std::string> select_migrations(const std::vector<std::string> &names, const Version &from, const Version &to);

// Runs these hooks as the account that this process has, one after the other, and leaves none of their processes running. It sends its
// progress to `channel` several times a second, and ends a hook when nobody is there to take that. Throws Failure(system_failure) unless
// each hook ends in time with success.
void run_migrations(const AsUser &self, const MigrationPlan &plan, const Version &from, const HomeToMigrate &home, FdRef channel);

// --- Gives directories the set-gid bit for a session: by descriptor, and directories alone.

// The agent's account with the groups of `user` added. chmod(2) drops the set-gid bit of a directory whose group the caller does not have.
// The user's primary group is not added: the project's mount shows it as the agent's group.
Account agent_with_groups_of(const Account &agent, const Account &user);

// Answers ModeRequests at `channel` until its peer is gone. The session asks, so each request is checked as if the agent had sent it.
void serve_directory_modes(const AsUser &agent, FdRef channel);

} // namespace pi_agent
