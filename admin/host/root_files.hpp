// Root's own files and directories, the policy's among them: read, replaced in one step, locked, kept and put back.
#pragma once

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "common/policy/policy_load.hpp"

#include <optional>
#include <ostream>
#include <string>
#include <sys/types.h>
#include <vector>

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

// --- Directories of pi-agent that belong to root (docs/reference/files.md), made by descriptor.

// The state directory with `users`, root 0711: passable to the agents' own homes, listable by nobody else; and `sessions`, root 0700:
// what a session's temporary directories hold is shown to it by mounts (runner/root/session/scratch.hpp). The runner keeps the same modes.
// What one user's state holds is made by the runner at that user's first launch.
void make_state_directories(const AsRoot &root, const Policy &policy, Changes &changes);

// One directory of root's, whose parent is root's too.
void make_root_directory(const AsRoot &root, const std::string &path, mode_t mode, Changes &changes);

// --- Locks of pi-agentctl: two that change the host at once would take each other's temporary files.

// Held as long as the descriptor is open. Nobody but root can open them, so nobody else can hold them. Throws Failure(limit) when it is
// held.
UniqueFd take_apply_lock(const AsRoot &root);  // of what changes the host: apply, rollback, remove
UniqueFd take_edit_lock(const AsRoot &root);   // of who edits the policy; held for as long as an editor is open
UniqueFd take_agents_lock(const AsRoot &root); // of who installs an agent; held while it is fetched

// --- The files of the installed policy as a whole: what was applied is kept, and put back.

// Absolute paths with their texts, the main file first.
using PolicyFiles = std::vector<PolicySource>;

bool are_same(const PolicyFiles &one, const PolicyFiles &other);

// The difference as text, file by file (admin/text/terminal.hpp).
std::string difference_of(const PolicyFiles &before, const PolicyFiles &after);

// The file of the policy that `name` means: the main one, or one of policy.d, by its path or by its name there, or users.d/NAME.yaml; it
// need not exist. Throws Failure(usage) for what would not be read as a part of the policy.
std::string policy_file_named(const std::string &name);

// The directory that holds such a file; policy.d and users.d are made where they are missing.
UniqueFd open_policy_directory(const AsRoot &root, const std::string &path);
// Makes such a directory, or that of the main file, unless it is there. Throws where others than root could lead it elsewhere.
void make_policy_directory(const std::string &directory);

// Makes `wanted` the installed policy, root 0644: all its files are written before the first takes its place, so that a full disk leaves
// the policy as it was; files of policy.d and users.d that are not wanted go last.
void install_policy_files(const AsRoot &root, const PolicyFiles &installed, const PolicyFiles &wanted, Changes &changes);

// What apply keeps, in /var/lib/pi-agent/applied, root 0700: the policy that was last applied, and the one that was applied before that and
// was another. The place is fixed, because state_dir is a part of the policy.
extern const char *const applied_directory;
inline std::string path_of_applied(const std::string &name)
{
    return std::string(applied_directory) + "/" + name;
}
constexpr const char *hidden_name = "hidden.json"; // of admin/host/hidden_places.cpp, which goes with the directory
struct AppliedPolicies {
    std::optional<PolicyFiles> last, previous;
};
AppliedPolicies read_applied(const AsRoot &root);

// Makes that directory, and notes that `files` have been applied; nothing changes where they were the last.
void make_applied_directory(const AsRoot &root, const std::string &state_dir, Changes &changes);
void keep_applied(const AsRoot &root, const PolicyFiles &files);
// Takes the directory away, with what is kept there.
void forget_applied(const AsRoot &root, Changes &changes);

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
