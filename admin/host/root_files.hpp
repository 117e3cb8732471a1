// Root's own files and directories: read, replaced in one step, and locked.
#pragma once

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "common/policy/policy_load.hpp"

#include <ostream>
#include <string>
#include <sys/types.h>

namespace pi_agent {

// --- Files of root's that are replaced in one step: whoever reads them sees the old text or the new one, whatever ends the host meanwhile.

// Makes `name` new in a directory that only root can write, root:root, on disk when this returns; a former one of that name goes. `path` is
// for messages.
void write_beside(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path);

// Gives it the name `final_name`, in the place of what has that.
void move_into_place(FdRef directory, const std::string &name, const std::string &final_name, const std::string &path);

// Both, by way of NAME.new.
void replace_root_file(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path);

// A missing one is fine.
void remove_root_file(FdRef directory, const std::string &name, const std::string &path);

// --- The changes that a command makes to the host, said one by one; with --dry-run only said.

class Changes {
public:
    Changes(bool dry_run, std::ostream &out) : dry_run_(dry_run), out_(out) {}

    // Does `action` and then says so; `what` reads as an order, e.g. "create the account pi-agent". A dry run shows `difference` too, the
    // lines of a file that would change (admin/text/terminal.hpp).
    template <typename Action>
    void make(const std::string &what, const Action &action, const std::string &difference = {})
    {
        if (!dry_run_) action();
        out_ << (dry_run_ ? "would: " : "done: ") << what << '\n';
        if (dry_run_) out_ << difference;
        out_ << std::flush;
        ++count_;
    }

    [[nodiscard]] bool dry_run() const noexcept { return dry_run_; }
    [[nodiscard]] int count() const noexcept { return count_; }

private:
    bool dry_run_;
    std::ostream &out_;
    int count_ = 0;
};

// --- Directories of pi-agent that belong to root (docs/places.md), made by descriptor.

// The state directory with `users`, root 0711: passable to the agents' own homes, listable by nobody else; and `sessions`, root 0700:
// what a session's temporary directories hold is shown to it by mounts (runner/root/session/scratch.hpp). The runner keeps the same modes.
// What one user's state holds is made by the runner at that user's first launch.
void make_state_directories(const AsRoot &root, const Policy &policy, Changes &changes);

// One directory of root's, whose parent is root's too.
void make_root_directory(const AsRoot &root, const std::string &path, mode_t mode, Changes &changes);

// --- Locks of pi-agentctl: two that change the host at once would take each other's temporary files.

// Held as long as the descriptor is open. Nobody but root can open them, so nobody else can hold them. Throws Failure(limit) when it is
// held.
UniqueFd take_apply_lock(const AsRoot &root); // of what changes the host: apply, rollback, remove
UniqueFd take_edit_lock(const AsRoot &root);  // of who edits the policy; held for as long as an editor is open

// --- Hosts whose own configuration brings the policy and the sudo rule (NixOS), as a build option.

// What doctor and messages say in the place of "pi-agentctl apply".
inline const char *bring_sudo_rule()
{
    return build::is_system_managed ? "rebuild the system, whose configuration brings the rule" : "sudo pi-agentctl apply";
}

// For commands that write the policy. Throws Failure(usage) where it is not theirs to write.
inline void require_own_policy(const char *command)
{
    if (build::is_system_managed)
        throw Failure(ExitStatus::usage, std::string(command) + ": " + policy_path +
                                             " is made by the configuration of this system; change it there, and rebuild the system");
}

} // namespace pi_agent
