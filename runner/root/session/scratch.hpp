// The temporary directories of one session: /tmp and /var/tmp of its view, and TMPDIR in the former.
#pragma once

#include "runner/plan/environment.hpp"
#include "runner/root/session/disk_quota.hpp"
#include "runner/root/session/session_directory.hpp"

namespace pi_agent {

// Below the state directory, root's own: holds a directory for each session, named by its id.
constexpr const char *scratch_parent = "sessions";
constexpr const char *scratch_link = "on-disk"; // in the session's directory; leads nowhere: its text is the path to remove

// Makes the temporary directories and mounts them at `scratch` in the session's directory, as "tmp" and "var-tmp". On disk they are in
// STATE_DIR/sessions/ID. The session's directory records that path first, so that the removal finds it. Returns the directory that holds
// both, locked until release_scratch() or the end of this process. On disk they join the project of `quota`, if there is one. Throws
// Failure(system_failure) in words when nothing fits on the file system any more.
UniqueFd make_scratch(const AsRoot &root, const SessionDirectory &session, ScratchKind kind, const std::string &state_dir,
                      const std::string &id, const Account &agent, const std::optional<DiskQuota> &quota = std::nullopt);
// STATE_DIR/sessions, made if need be.
UniqueFd open_scratch_parent(const AsRoot &root, const std::string &state_dir);
// Call it when no process of the session runs any more: a process that removes what it left need not wait for this one.
void release_scratch(FdRef scratch) noexcept;

// The two directories of an overlay's changes in what make_scratch returned, by name: the agent owns `upper`, and root owns `work`. Only
// root reaches them, by any path. The overlay shows none of the `masked` names, whatever is below it: each is a whiteout.
struct CacheLayer {
    std::string upper;
    std::string work;
};
CacheLayer make_cache_layer(FdRef scratch, std::size_t number, const Account &agent, const std::vector<std::string> &masked);

// True for the name of a `work` directory, which holds the kernel's own "work"; the agent owns the session's other directories.
bool is_cache_work(const std::string &name) noexcept;

// What to tell the user when the file system behind `directory` is nearly full; `what` names what is stored there.
std::optional<std::string> nearly_full(FdRef directory, const std::string &what);

} // namespace pi_agent
