// What is pi-agent's on a host: root's own files, accounts, the agent's program, the command's name, the sudo rule, and a change that is
// not finished.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy_load.hpp"

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
// it. `sessions` is root 0700: mounts show a session what its temporary directories hold (runner/root/session/session_directory.hpp). The
// runner keeps the same modes. It makes the content of a user's state at that user's first launch.
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

// Whether a policy of these files says agent.accounts. One that does not is valid as long as users.d has no file.
bool says_accounts(const PolicyFiles &files);

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
// Parses it. Throws Failure(configuration) for a text that is not JSON, or where `take` misses a value: `remedy` ends that message. With a
// version, also for a note of another one.
enum class NoteVersion { none, first };
void parse_note(const char *name, const std::string &text, const char *remedy, NoteVersion version,
                const std::function<void(const nlohmann::json &json)> &take);

// --- Copies of the files that packages have in /etc and nobody changed (package_files_directory), root 0755.

// For dpkg's trigger, and make_package_files(): looks at all of them again. Files that are as they were are not written.
void copy_package_files(const AsRoot &root);
// The same at the end of apply, which neither fails for it nor counts it as a change.
void make_package_files(const AsRoot &root, std::ostream &warnings);
void forget_package_files(const AsRoot &root, Changes &changes);

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

// For commands that write the policy. Throws Failure(usage) on a host whose policy they must not write.
inline void require_own_policy(const char *command)
{
    if (build::is_system_managed)
        throw Failure(ExitStatus::usage, std::string(command) + ": " + policy_path +
                                             " is made by the configuration of this system; change it there, and rebuild the system");
}

// --- The accounts that agents run as: which ones the policy needs, what is wrong with existing ones, and making the missing ones.

struct AgentAccount {
    std::string name;
    std::string user; // whose agent, "" for an account of several
    Position where;   // what in the policy asks for it
    std::string key;
};

// `name` as systemd-sysusers takes it (can_be_created): without dots, and cut.
std::string creatable_name(std::string name);

// From now on look-ups of accounts and groups answer from one reading of the user database, as long as its files are the same. Where a
// directory service has a part in it, each look-up asks.
void remember_accounts();

constexpr const char *services_path = "/etc/nsswitch.conf";
// Of a line of nsswitch.conf(5), "passwd": the services besides files of this host.
std::vector<std::string> services_of(std::string_view database, const std::string &nsswitch);
std::vector<std::string> services_of_users(); // of this host

// Names of the members of a group, primary and supplementary.
std::vector<std::string> group_members(const std::string &group);

// The numbers of accounts that apply makes: systemd-sysusers' own, and of this range where a policy needs many. Debian and systemd give
// these to nobody; subordinate numbers begin at 100000 (docs/decisions/0120-many-accounts.md).
struct NumberRange {
    uid_t first, last;
};
constexpr NumberRange numbers_of_many = {70000, 99999};
constexpr bool is_agents_number(Uid uid)
{
    constexpr uid_t first_ordinary = 1000; // systemd-sysusers chooses none from here on
    return uid.value() < first_ordinary || (uid.value() >= numbers_of_many.first && uid.value() <= numbers_of_many.last);
}

// Of that range, each without a user and a group. Throws Failure(configuration) where it has fewer.
std::vector<uid_t> free_numbers(std::size_t count);

using MembersOf = std::function<std::vector<std::string>(const std::string &group)>;
std::vector<std::string> users_of(const Policy &policy); // by name, with the current members of its groups; each once
// Every account that an agent may run as under `policy`, each once. Group entries count the members of today. Users whom the host does not
// know need none.
std::vector<AgentAccount> needed_agent_accounts(const Policy &policy);
using IsKnown = std::function<bool(const std::string &user)>;
std::vector<AgentAccount> needed_agent_accounts(
    const Policy &policy, const MembersOf &members_of, const IsKnown &is_known = [](const std::string & /*user*/) { return true; });

// Reports accounts that exist but must not be an agent's, missing ones that cannot be made, and users that could reach the agent's program
// through its group.
void check_agent_accounts(const Policy &policy, const std::vector<AgentAccount> &needed, Problems &problems);

// What is missing, as input of systemd-sysusers (sysusers.d(5)).
struct MissingAccounts {
    bool group = false;
    std::vector<AgentAccount> accounts;
    std::vector<std::string> members; // existing accounts that are not in the agents' group
};
MissingAccounts find_missing(const Policy &policy, const std::vector<AgentAccount> &needed);
// `numbers`: of the accounts of one user each; without them, systemd-sysusers chooses.
std::string sysusers_text(const Policy &policy, const MissingAccounts &missing, const std::vector<uid_t> &numbers = {});

// Makes what is missing; if the policy says `create_user: false`, that is a PolicyError.
void create_accounts(const AsRoot &root, const Policy &policy, const std::vector<AgentAccount> &needed, Changes &changes);

// --- Accounts that apply made, and taking them back.

// What apply writes as the real name of an account.
constexpr std::string_view made_for_several = "pi-agent";
constexpr std::string_view made_for_one = "pi-agent of ";

struct MadeAccount {
    Account account;
    std::string user; // whose agent's, as in paths (short_name); empty for an account of several
};
// Those with the usual state directory as their home, no shell, and the purpose that apply gives them. A user can change none of an
// account's home and shell; it leaves accounts that somebody else made.
std::vector<MadeAccount> made_agent_accounts();

// Throws Failure(system_failure) with what userdel(8) says: it removes no account with a process.
void remove_agent_account(const AsRoot &root, const std::string &name, Changes &changes);
// By groupdel(8), likewise.
void remove_group(const std::string &name);

// --- What still belongs to the agents' group, whose number is about to be free: whoever gets that number next would own it.

// Where pi-agent or its administrator has reason to give something to the group: what apply hides or has hidden, and /etc/pi-agent.
std::set<std::string> places_of_group(const AsRoot &root, const Policy &policy);

// Throws Failure(configuration), which names the first of it at these places and below them, and says what to do.
void require_nothing_of_group(const std::set<std::string> &places, const std::string &group);

// --- The agent's program: whether it can be trusted, and hiding it from everybody but agents while the wrapper is on.

// What is closed to others: the tree that holds only the agent, or its npm package, or without these only the program's file.
struct HidingPlace {
    std::string path;
    bool whole_tree;
};

// `directory` is the canonical directory of agent.binary, `program` the canonical file that it leads to. The rule: a program of
// /usr/lib/pi-agent/agents (pi-agentctl agent install) hides that directory, with all versions. One in TREE/bin hides TREE, if TREE is
// /usr/lib/pi-agent/agent or is below /opt, and the program leads nowhere outside of it. One in an npm package hides the package. Any other
// hides only its file, because its directory is shared (/usr/bin). Nothing in the Nix store is hidden, because it cannot be changed.
std::optional<HidingPlace> choose_hiding_place(const std::string &directory, const std::string &program);

// Reports a program that does not exist, is not an executable file, is the wrapper itself, or can be changed by others than root. Returns
// false if this process may not look.
bool check_agent_binary(const Policy &policy, Problems &problems);

// The directory of the innermost npm package that holds this canonical path (DIRECTORY/node_modules/NAME or …/@SCOPE/NAME). Pure.
std::optional<std::string> npm_package_of(const std::string &path);

// The hiding place of agent.binary. Throws SystemFailure (ENOENT) if there is no such program.
std::optional<HidingPlace> hiding_place_of(const AsRoot &root, const Policy &policy);
// The same, but empty if the agent was removed.
std::optional<HidingPlace> hiding_place_if_there(const AsRoot &root, const Policy &policy);

// Gives that place to root and the agents' group, closed to others; or opens it again where the policy says hide_direct_binary: false.
void hide_agent_binary(const AsRoot &root, const Policy &policy, Changes &changes);

// --- What apply has hidden on this host, with the owner and mode that it had before.

struct FormerRights {
    uid_t uid = 0;
    gid_t gid = 0;
    mode_t mode = 0755;
    bool operator==(const FormerRights &) const = default;
};
FormerRights rights_in(const struct stat &facts);
void give_rights(FdRef place, const FormerRights &rights, const std::string &path);
void to_json(nlohmann::json &json, const FormerRights &rights);
void from_json(const nlohmann::json &json, FormerRights &rights);

// By canonical path. Kept beside the policies that were applied, in a directory that only root can enter.
using HiddenPlaces = std::map<std::string, FormerRights>;
HiddenPlaces read_hidden_places(const AsRoot &root);

// Whether a group is the agents': `group`, which the last applied policy names, or a group that does not exist any more.
bool is_agents_group(const AsRoot &root, gid_t gid, const std::string &group);

// Gives owner and mode back to each noted place that is not in `current`, and forgets it. A place whose owner or mode somebody has changed
// meanwhile stays as it is. It stays noted as long as it belongs to the agents' group.
void give_back_hidden(const AsRoot &root, const std::set<std::string> &current, const std::string &group, Changes &changes);

// --- The agent as npm installs it for everybody (npm install -g), beside the one that the policy names.

// The directories where everybody's shell finds programs.
inline constexpr std::array<const char *, 6> system_program_directories = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                                                           "/usr/bin",        "/opt/bin",       "/snap/bin"};

struct NpmInstall {
    std::string path;     // of the package's directory
    bool is_open;         // to everybody, by its mode; or not known, where others can change the way to it
    std::string why_left; // what keeps apply from closing it; empty when nothing does
};

// Packages of the agent's names in npm's global directories, and those that the command `pi` of a system directory is a link into, without
// the one that holds agent.binary. Root changes nothing on a way that others can change, and nothing that a link only leads to.
std::vector<NpmInstall> find_npm_installs(const AsRoot &root, const Policy &policy);

// These, and the place of agent.binary if it exists.
std::set<std::string> places_of_agent(const AsRoot &root, const Policy &policy);

// Closes the open ones like the policy's agent, or opens those that were closed so if the policy says hide_direct_binary: false. Returns
// those that stay open.
std::vector<NpmInstall> hide_npm_installs(const AsRoot &root, const Policy &policy, Changes &changes);

// --- The other name of the command: `wrapper.command_name`, with its completions and its page of the manual.

// Where the wrapper and what belongs to it are installed, and the file that has the names that apply made: nothing else is ever removed.
struct CommandPlaces {
    std::string wrapper; // the program; another name is a symlink beside it
    std::string data;    // the directory with completions and manual
    std::string note;
};
CommandPlaces places_of_command(); // of this build

// Reports a name that something else on this host has, and any other name where the system's configuration makes the command.
void check_command_name(const Policy &policy, const CommandPlaces &places, Problems &problems);

// Makes the name, and takes away what an earlier apply made under another name. A completion or page of that name which another program
// brought stays as it is. Throws Failure(configuration) if something else has the command's name.
void install_command(const AsRoot &root, const std::string &name, const CommandPlaces &places, Changes &changes);

// What the command is called here: as apply called it, or as the wrapper is called.
std::string noted_command(const AsRoot &root, const CommandPlaces &places);

// Takes away all that it made.
void remove_command(const AsRoot &root, const CommandPlaces &places, Changes &changes);

constexpr const char *sudoers_directory = "/etc/sudoers.d";

// --- Which sudo the wrapper starts: the original, or sudo-rs, which reads the same files but knows fewer settings.

enum class SudoKind {
    original,
    older, // the original before 1.9.8, without log_subcmds and intercept: visudo refuses a setting that it does not know
    rs,    // sudo-rs: it leaves out, and complains of, each line that has a setting it does not know
};

// From what `sudo --version` prints. Pure.
SudoKind sudo_kind_of(const std::string &version);

// Of the program that the wrapper runs. Without one, nobody can start anything, and it counts as the original.
SudoKind installed_sudo_kind();

std::string visudo_of(SudoKind kind);       // judges as that sudo does: a host may have both
std::string main_sudoers_of(SudoKind kind); // the file that it begins with

// What visudo says of everything that sudo reads.
struct SudoersCheck {
    std::string output;
    std::string problem; // empty where sudo takes it
};
SudoersCheck check_sudoers(SudoKind kind);

// Whether that sudo reads `path`, the installed rule, when its `visudo -c` printed `checked`. sudo-rs names no file there, so it is asked
// what `users`, the policy's, may run. Without users, the rule would be for nobody, and the answer is yes.
bool does_sudo_read(SudoKind kind, const std::string &path, const std::string &checked, const std::vector<std::string> &users);

// --- The sudo rule that lets authorised users start the runner, and nothing else: its text, and its installation.

// The whole file, in words that this sudo knows: one rule without arguments for each entry of the policy, except users of users.d who are
// members of a group that has an entry. Above some hundreds it is one rule for everybody but members of the agents' group, so that it does
// not grow; the runner reads the policy in any case (docs/decisions/0061-one-sudo-line.md). Throws Failure(internal) for a runner path that
// would need quoting there; names are plain since the policy was parsed.
std::string sudoers_text(const Policy &policy, const std::string &policy_file, const std::string &runner, SudoKind kind,
                         const MembersOf &members_of = group_members);

// Throws Failure(internal) if the visudo of that sudo refuses it.
void require_valid_rule(const std::string &text, SudoKind kind);

// Installs `text` as `directory`/pi-agent, unless it is installed already. Lets visudo check it alone, writes it under a name that sudo
// ignores, renames it, and checks the whole configuration again; if that fails, the former file comes back. `users` are the policy's.
void install_sudoers(const AsRoot &root, const std::string &directory, const std::string &text, SudoKind kind,
                     const std::vector<std::string> &users, Changes &changes);

// The installed rule, if there is one. Putting it back restores exactly that rule, or removes the new one if there was none.
std::optional<std::string> read_sudoers(const AsRoot &root, const std::string &directory);
void put_back_sudoers(const AsRoot &root, const std::string &directory, const std::optional<std::string> &former);

// Whether the rule `text` is for `user`, by name or by group.
bool lets_start(const std::string &text, const Account &user);

// Removes the rule: nobody can start the runner any more.
void remove_sudoers(const AsRoot &root, const std::string &directory, Changes &changes);

// --- What the host was before a change that is not finished: kept on disk, so that the change can go back by itself, also after a kill.

// The policy's files, where the same command replaces them (rollback, edit).
struct PolicyChange {
    PolicyFiles before, wanted;
};

// Whether each of these files is one of the two policies: the command itself put it there, however far it came.
bool is_between(const PolicyFiles &installed, const PolicyChange &change);

// Everything that apply may change, as it was. What apply does not change is not in it.
struct HostBefore {
    std::string command;                                       // that goes on with it now: an id that no other command has
    std::string group, state_dir;                              // of the policy that is applied
    bool had_group = true;                                     // the agents' group
    std::vector<std::string> new_accounts, new_members;        // that did not exist; that were not in the group
    std::map<std::string, std::optional<FormerRights>> places; // canonical paths; without rights: a directory that did not exist
    std::optional<std::string> rule;                           // of sudo; none: there was none
    std::optional<std::string> hidden;                         // the notes of what is hidden (HiddenPlaces)
    std::optional<std::string> state_note;                     // of where the homes are; none: where they are by default
    std::string command_name;                                  // what apply called the command
    std::optional<PolicyChange> policy;
};

// The host as it is now. Throws what apply would throw where it cannot look.
HostBefore look_at_host(const AsRoot &root, const Policy &policy);

// For a command that goes on with what another one began: what the other one found counts, and what it did not look at is as it is now.
HostBefore joined(HostBefore earlier, const HostBefore &now);

// The file, in /var/lib/pi-agent/applied, root 0600: as text and back. Throws Failure(configuration) for a damaged one.
std::string to_text(const HostBefore &before);
HostBefore host_before_of(const std::string &text);

// Empty if the last change was finished. Writing replaces it in one step, on disk; the directory must exist.
std::optional<HostBefore> read_unfinished(const AsRoot &root);
void write_unfinished(const AsRoot &root, const HostBefore &before);
void remove_unfinished_note(const AsRoot &root);

// Makes the host what it was: first the policy's files, if nobody else has changed them, and the sudo rule, so that nobody can start what
// goes back next. Accounts and directories stay if anything is in them. True if all that can go back has; the rest is told on `warnings`.
bool go_back(const AsRoot &root, const HostBefore &before, Changes &changes, std::ostream &warnings);

} // namespace pi_agent
