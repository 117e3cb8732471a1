// The temporary directories of one session: /tmp and /var/tmp of its view, and TMPDIR in the former.
#pragma once

#include "common/host/account.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/environment.hpp"
#include "runner/root/session/session_directory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// Below the state directory, root's own: holds a directory for each session, named by its id.
constexpr const char *scratch_parent = "sessions";
constexpr const char *scratch_link = "on-disk"; // in the session's directory; leads nowhere: its text is the path of what is to be removed

// Makes them and mounts them at `scratch` in the session's directory, with "tmp" and "var-tmp" in it. On disk they lie in
// STATE_DIR/sessions/ID, of which the session's directory is told first, so that whoever removes that finds them. Returns the directory
// that holds both, locked until release_scratch() or this process' end. Throws Failure(system_failure) in words when nothing fits on the
// file system any more.
UniqueFd make_scratch(const AsRoot &root, const SessionDirectory &session, ScratchKind kind, const std::string &state_dir,
                      const std::string &id, const Account &agent);
// Nothing of the session runs any more: whoever removes what it left need not wait for this process.
void release_scratch(FdRef scratch) noexcept;

// The two directories of an overlay's changes in what make_scratch returned, by name: `upper` is the agent's, and `work` is root's. No
// account but root's comes there by any path. Of `masked` the overlay shows nothing, whatever lies below it: each is a whiteout.
struct CacheLayer {
    std::string upper;
    std::string work;
};
CacheLayer make_cache_layer(FdRef scratch, std::size_t number, const Account &agent, const std::vector<std::string> &masked);

// True for the name of a `work` directory, which holds a "work" of the kernel's; its session's other directories are the agent's.
bool is_cache_work(const std::string &name) noexcept;

// What to tell the user when the file system behind `directory` is nearly full; `what` names what lies there.
std::optional<std::string> nearly_full(FdRef directory, const std::string &what);

} // namespace pi_agent
