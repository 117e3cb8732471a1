// Root's own files and directories, the policy's among them: reads them, replaces them in one step, locks them, keeps them and puts them
// back.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy_load.hpp"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <ostream>

namespace pi_agent {

// --- Root's files that are replaced in one step: readers see the old text or the new one, even if the host goes down meanwhile.

// Creates `name`, root:root, in a directory that only root can write; it is on disk when this returns. Removes a former file of that name.
// `path` is for messages.
void write_beside(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path);

// Renames it to `final_name`, and replaces what has that name.
void move_into_place(FdRef directory, const std::string &name, const std::string &final_name, const std::string &path);

// Both, by way of NAME.new.
void replace_root_file(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path);

// A missing one is fine.
void remove_root_file(FdRef directory, const std::string &name, const std::string &path);

// --- The changes that a command makes to the host, printed one by one; with --dry-run only printed.
class Changes {
public:
    Changes(bool dry_run, std::ostream &out) : dry_run_(dry_run), out_(out) {}

    // Does `action` and then prints it; `what` reads as an order, e.g. "create the account pi-agent". A dry run also prints `difference`,
    // the lines of a file that would change (admin/text/terminal.hpp).
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

// The state directory with `users` and `sessions`. `users` is root 0711: others can pass to the agents' own homes, but only root can list
// it. `sessions` is root 0700: mounts show a session what its temporary directories hold (runner/root/session/scratch.hpp). The runner
// keeps the same modes. It makes the content of a user's state at that user's first launch.
void make_state_directories(const AsRoot &root, const Policy &policy, Changes &changes);

// One directory of root's, whose parent belongs to root too.
void make_root_directory(const AsRoot &root, const std::string &path, mode_t mode, Changes &changes);

// --- Locks of pi-agentctl: two commands that change the host at once would take each other's temporary files.

// Held as long as the descriptor is open. Only root can open them, so nobody else can hold them. Throws Failure(limit) if somebody holds
// it.
UniqueFd take_apply_lock(const AsRoot &root);  // of commands that change the host, from apply to state move
UniqueFd take_edit_lock(const AsRoot &root);   // of whoever edits the policy; held as long as an editor is open
UniqueFd take_agents_lock(const AsRoot &root); // of whoever installs an agent; held during the fetch

// --- The files of the installed policy as a whole: keeps what was applied, and puts it back.

// Absolute paths with their texts, the main file first.
using PolicyFiles = std::vector<PolicySource>;

bool are_same(const PolicyFiles &one, const PolicyFiles &other);

// As they are kept. Reading throws nlohmann's exceptions for what is not of this form, and Failure(configuration) for a name that the
// policy's reader would not read: the kept file belongs to root, but going back writes what it names.
void to_json(nlohmann::json &json, const PolicySource &file);
void from_json(const nlohmann::json &json, PolicySource &file);

// The difference as text, file by file (admin/text/terminal.hpp).
std::string difference_of(const PolicyFiles &before, const PolicyFiles &after);

// The file of the policy that `name` means: the main one, or one of policy.d, by its path or by its name there, or users.d/NAME.yaml; it
// need not exist. Throws Failure(usage) for a file that would not be read as a part of the policy.
std::string policy_file_named(const std::string &name);

// The directory that holds such a file; policy.d and users.d are made where they are missing.
UniqueFd open_policy_directory(const AsRoot &root, const std::string &path);
// Makes such a directory, or the main file's, unless it exists. Throws if others than root could lead it elsewhere.
void make_policy_directory(const std::string &directory);

// Whether a policy of these files says agent.accounts. One that does not is valid as long as there is no users.d.
bool says_accounts(const PolicyFiles &files);
// Removes a users.d without files, with which a policy that does not say agent.accounts would let nobody start.
void drop_empty_users_directory(const PolicyFiles &wanted);

// Makes `wanted` the installed policy, root 0644. Writes all its files before the first takes its place, so that a full disk leaves the
// policy as it was. Removes unwanted files of policy.d and users.d last, and then a users.d that is in the way.
void install_policy_files(const AsRoot &root, const PolicyFiles &installed, const PolicyFiles &wanted, Changes &changes);

// What apply keeps, in /var/lib/pi-agent/applied, root 0700: the policy that was last applied, and the last different one before it. The
// place is fixed, because state_dir is a part of the policy.
extern const char *const applied_directory;
inline std::string path_of_applied(const std::string &name)
{
    return std::string(applied_directory) + "/" + name;
}
// Notes of others there, removed with the directory, root 0600.
constexpr const char *hidden_name = "hidden.json";               // what apply has hidden
constexpr const char *unfinished_apply_name = "unfinished.json"; // a change that is not finished
constexpr const char *command_note = "command";                  // other names of the command
constexpr const char *state_note = "state.json";                 // where the agents' homes are
// The text of one; empty without it.
std::optional<std::string> read_note(const char *name);
// Replaces it in one step, on disk; the directory must exist. Without a text removes it, if the directory is there.
void write_note(const char *name, const std::optional<std::string> &text);
// Parses it. Throws Failure(configuration) for what is no JSON, or what `take` finds no value in: `remedy` ends that message. With a
// version, also for a note of another one.
enum class NoteVersion { none, first };
void parse_note(const char *name, const std::string &text, const char *remedy, NoteVersion version,
                const std::function<void(const nlohmann::json &json)> &take);

struct AppliedPolicies {
    std::optional<PolicyFiles> last, previous;
};
AppliedPolicies read_applied(const AsRoot &root);

// Makes that directory, and notes that `files` have been applied; of those that were the last, only the time is noted.
void make_applied_directory(const AsRoot &root, const std::string &state_dir, Changes &changes);
void keep_applied(const AsRoot &root, const PolicyFiles &files);
// When a file was last written; microseconds since 1970. None without such a file.
std::optional<std::uint64_t> time_of_file(const std::string &path);
// When keep_applied() was last called, likewise.
std::optional<std::uint64_t> last_apply(const AsRoot &root);
// Removes the directory, with what is kept there.
void forget_applied(const AsRoot &root, Changes &changes);

// --- Hosts whose own configuration brings the policy and the sudo rule (NixOS), as a build option.

// What doctor and messages say instead of "pi-agentctl apply".
inline const char *bring_sudo_rule()
{
    return build::is_system_managed ? "rebuild the system, whose configuration brings the rule" : "sudo pi-agentctl apply";
}

// For commands that write the policy. Throws Failure(usage) on a host whose policy they must not write.
inline void require_own_policy(const char *command)
{
    if (build::is_system_managed)
        throw Failure(ExitStatus::usage, std::string(command) + ": " + policy_path +
                                             " is made by the configuration of this system; change it there, and rebuild the system");
}

} // namespace pi_agent
