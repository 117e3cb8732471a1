// What is wrong on this host, part by part, for `doctor` and `check`.
#pragma once

#include "admin/diagnose/explain.hpp"

namespace pi_agent {

// --- What is wrong with this host, for pi-agentctl doctor.
struct Fault {
    std::string about; // a short stable name: "sudo-rule", "other-pi", …; docs/reference/doctor.md lists them
    std::string what;  // escaped for display
    std::string remedy;
};
using Faults = std::vector<Fault>;

// Of what was found, one after another.
template <typename Found>
void add(std::vector<Found> &all, const std::vector<Found> &more)
{
    all.insert(all.end(), more.begin(), more.end());
}

// Each level of the policy that says something; `whose` is before its keys: "users.alice.".
void each_level(const Policy &policy, const std::function<void(const Rules &rules, const std::string &whose)> &visit);

// How much of what a start needs must exist, the agents' homes included. later: nothing yet, because no session can run (an image that is
// being built). installed: the programs, though what they need may not run just now. running: everything that a start asks for.
enum class Means { later, installed, running };

// --- Does this host fit a policy: its users, groups and roots, the agent's program, accounts and homes, and what the method needs?

// Reports files of the installed policy that its users cannot read, and a missing sudo.
void check_installed_files(Problems &problems);

// A check of a policy on this host: who looks, how much must exist, and what was found.
struct HostCheck {
    const Policy &policy;
    const Observer &observer;
    Means means = Means::running;
    Problems problems = {};                   // what keeps a start from what the policy says
    std::vector<std::string> unverified = {}; // what this process could not find out
    std::vector<Diagnostic> gone = {};        // users, groups and roots that this host does not have: they keep nobody else from starting
    std::vector<Diagnostic> warnings = {};    // roots that others can exchange, that overlap, or on whose file system a start is refused

    // Reports why `task` fails. False if it does.
    template <typename Task>
    bool report_failure(const Position &where, const std::string &key, const char *remedy, const Task &task)
    {
        try {
            task();
            return true;
        } catch (const Failure &failure) {
            problems.add(where, key, failure.what(), remedy);
            return false;
        }
    }
};

// There may be a problem of a key already; then it does not look at anything that follows from that key's value.
void check_host(HostCheck &check);

// For a valid policy: what it says of jobs that no session has.
std::vector<Diagnostic> find_idle_placement(const Policy &policy);

// For a valid policy: that a cluster it names cannot be asked from this host, which keeps nobody from starting inside of a job.
std::vector<Diagnostic> find_missing_cluster(const Policy &policy);

// For a valid policy: what a start would miss of the agents' homes and the method's programs, which Means::later leaves out.
std::vector<Diagnostic> find_what_starts_lack(const Policy &policy, const Observer &observer);

// --- What is wrong with the host beside the policy: ways around the wrapper, what agents' accounts run outside of sessions, what sessions
// left.

// Whether two paths lead to one existing file, links followed.
bool is_same_file(const std::string &one, const std::string &other);

// Users of the policy, with the accounts that their agents run as.
struct UserOfPolicy {
    Account user, agent;
    AccessRules rules;
};
using AgentsOfUsers = std::vector<UserOfPolicy>;

// An agent's account, and the users whose agents run as it.
struct UsersOfAgent {
    Uid uid;
    std::vector<std::string> users;
};

// Programs that anybody can start instead of the wrapper: the agent itself, and other copies of it.
Faults find_open_programs(const AsRoot &root, const Policy &policy);
// Our own files, which root runs.
Faults find_changed_files();
// Accounts that agents of several users share; what such an account runs, or would run, without a session.
Faults find_account_faults(const std::map<std::string, UsersOfAgent> &agents);
// Where state cannot be kept, or a root cannot be mapped.
Faults find_file_system_faults(const AsRoot &root, const Policy &policy, const AgentsOfUsers &agents, const Observer &observer);
// What sessions left whose runners are gone, and an apply that was cut short.
constexpr const char *unfinished_change =
    "a change of this host (apply, rollback or edit) has not finished: it was cut short, or runs just now";
Faults find_leftovers(const AsRoot &root);

// --- Whether sudo lets each user of the policy start the runner, exactly that, and as the policy says.

// `json` is what cvtsudoers(1) prints for `user` on this host (-e -M -f json -m user=…,host=…). The last rule that fits decides. Compares
// the Defaults that this sudo obeys with what the runner needs. Pure. Throws Failure(system_failure) for any other text.
Faults judge_sudoers(const std::string &json, const std::string &user, const std::string &runner, SudoKind kind);

// The installed rule, and the judgement for each of `users`. Throws Failure if sudo's tools cannot be run.
Faults find_sudo_faults(const AsRoot &root, const Policy &policy, const std::vector<std::string> &users);

// --- What a user's own shell starts instead of the wrapper, found out as that user.

// The wrapper's own path, and those that lead to it from where the host has its programs: on NixOS, users find it by links.
std::vector<std::string> names_of_wrapper(const std::string &command, const std::string &wrapper);

// Runs the user's login shell, as that user and apart from this process (run_as_user). `wrapper`: its names, its own path first.
Faults find_user_faults(const AsRoot &root, const Account &user, const std::string &command, const std::vector<std::string> &wrapper);

// `output` comes from that shell, so its text is the user's word. Pure.
Faults judge_shell(const std::string &output, const std::string &user, const std::string &command, const std::vector<std::string> &wrapper);

// --- The files that a policy names and that a start reads as the user: not where agents write.

// The config directory, the key, the files of variables and of certificates that `entry`, or the policy for everybody, names. `user` is
// whose entry it is. For a group it is empty, and the names are compared with the group's roots as texts.
void check_named_files(HostCheck &check, const UserEntry &entry, const std::optional<Account> &user);

// --- pi-agentctl --version: what runs on this host, in one answer for a bug report.

// What cannot be found out is a line of the answer, and not a failure. Only root asks the agent's program, through a process of the agent's
// account.
void run_version(bool json, std::ostream &out);

// --- What a policy's documents should not hold, because many accounts can read them.

// The path of the first text in a document (JSON text of an object) that looks like a secret: by its key, as the value of an option, or as
// the credentials of a header. Empty without one. `path` names the document. A text is not a secret if it only names one of the
// `variables`, or is the word "none".
std::string secret_in_document(const std::string &document, const std::string &path, const std::set<std::string> &variables);

// --- pi-agentctl check: is the policy valid, and does this host fit it?

// What is wrong with neither policy nor host, but should be otherwise: sessions without a sandbox, a program that everybody can run,
// secrets that everybody can read, programs that the agent would download.
std::vector<Diagnostic> find_warnings(const Policy &policy);
void warn(const std::vector<Diagnostic> &found, std::ostream &warnings);

// All mistakes of a policy whose files are given: its own, and where it does not fit this host.
std::vector<Diagnostic> find_mistakes(const PolicyReading &reading, const Observer &observer, Means means);

// What a check looks at: the policy and this host, or its text alone, for another host (a machine that builds a system). tree: the text of
// a directory with policy.yaml, policy.d and users.d, instead of one file.
enum class CheckScope { host, policy_only, tree };

// The result of a check.
struct CheckReport {
    std::vector<Diagnostic> errors, warnings;
    std::vector<std::string> unverified;
    std::size_t entries = 0; // of `users`
    bool enabled = false;
    bool missing = false; // there is no policy at all
    std::string idle;     // idle_defaults (admin/diagnose/explain.hpp)
};

// Of the policy of this host, or of a draft, read alone from a file that need not be trusted. Judges each part as far as it can, whatever
// is wrong with the others. Throws only if the policy cannot be judged at all.
CheckReport check_policy(const std::optional<std::string> &draft, CheckScope scope = CheckScope::host);

// The text of `check` for a valid policy.
std::string to_text(const CheckReport &report);
// What `check --json` prints (docs/reference/json.md), except the version of its form (print_json).
nlohmann::json to_json(const CheckReport &report);

// The command. Throws PolicyError with everything that is wrong. Warnings go to `warnings`, the rest to `out`; with `json` everything goes
// to `out`.
void run_check(const std::optional<std::string> &draft, CheckScope scope, bool json, std::ostream &out, std::ostream &warnings);

// --- pi-agentctl doctor: every way around the wrapper, every reason why a start would fail, and whether the sandbox holds.
struct DoctorOptions {
    std::optional<std::string> user; // whose session tries the sandbox; by default the first user who has a root
    bool attack = false;             // print every probe with its answer, not only the wrong ones
    bool json = false;
};

// Throws Failure(unavailable) if anything is wrong, Failure(denied) unless root runs it.
void run_doctor(const DoctorOptions &options, std::ostream &out);

// --- A real session on this host, whose program tries what the sandbox must refuse: for pi-agentctl doctor, and the end of apply.
struct CanaryAnswer {
    std::string what, expected, seen;
    bool right = false;
};

// What a canary found.
struct CanaryReport {
    SandboxMethod method = SandboxMethod::systemd;
    std::string user;                  // empty: nobody of the policy could be taken
    std::string directory;             // where it was started
    std::string project = {};          // the same, as the session sees it
    std::vector<CanaryAnswer> answers; // empty: no session started
    std::vector<std::string> said;     // by pi, a line each
    std::string unasked = {};          // what the user's own permissions keep from being tried
    int status = 0;                    // of pi
    [[nodiscard]] std::vector<CanaryAnswer> wrong() const;
    [[nodiscard]] bool is_good() const { return !answers.empty() && wrong().empty() && status == 0; }
    [[nodiscard]] const CanaryAnswer *closed_proxy() const; // what the policy's proxy said instead of opening a tunnel; or nullptr
};

// Starts `pi --pi-agent-canary` as `name`, or as the first user of the policy who has a usable root, in such a root. Root starts it in the
// same way as every session, through sudo. `may_hang`: a fault was found that keeps pi from ending, so this waits less long. The answers
// come through processes of that user, and are recorded as the user's word. Throws Failure.
CanaryReport run_canary(const Policy &policy, const Observer &observer, const std::optional<std::string> &name, bool may_hang);

// The same as the first user of the policy for whom `can_try` is true and whose session starts: what keeps one user from starting (a broken
// configuration) says nothing about the sandbox, and what one user may not write leaves some of it untried. After a few users it gives up,
// and reports the first with answers, or else the first.
using CanTry = std::function<bool(const Account &user, const AccessRules &rules)>;
CanaryReport try_sandbox(const Policy &policy, const Observer &observer, const CanTry &can_try);

// "the sandbox (systemd) was tried as alice in /srv/app: all 93 probes passed".
std::string to_text(const CanaryReport &report);
nlohmann::json to_json(const CanaryReport &report);

// --- Roots that others than root and the user can exchange, or that lie on another host.

// A directory on the way to a root, from "/" to the root itself.
struct StepToRoot {
    std::string path;
    uid_t owner = 0;
    mode_t mode = 0;
};

struct RootDanger {
    std::string problem, remedy; // empty: none
};

// Who besides root and `user` can put another directory in the root's place, or anything into the root. Pure, except for the
// names of accounts. Groups do not count: whoever lets a group write somewhere means its members.
RootDanger danger_of_way(const std::vector<StepToRoot> &way, const Account &user);

// The same of a root that is open, for the process that has become `user`; and whether it lies on another host. A path that changes while
// this looks has no danger that could be told.
RootDanger danger_of_root(FdRef directory, const std::string &path, const Account &user);

// A root of the policy that was found on this host.
struct FoundRoot {
    std::string path; // canonical
    std::string user, key;
    Position where;
    bool has_rules = false; // of its own: then its user's sessions that start elsewhere do not see it
};

// Files and directories of root's own that every start of a user opens, where something of another kind has that name: no start works
// before it is moved away. The policy has no mistake there, so nothing else waits for it.
std::vector<Diagnostic> find_misplaced(const AsRoot &root, const Policy &policy);

// One warning for each root that is another one too, or is in one: the nearest that holds it. Pure.
std::vector<Diagnostic> find_overlaps(std::vector<FoundRoot> roots);

// --- Rules by name.

// "*.github.io" and similar, which would let a session reach whatever anybody puts there, by the host's list of public suffixes; and
// ports that a session has for its gate.
void check_host_rules(const Policy &policy, Problems &problems);

// Not mistakes, but hardly what was meant: a name without its own '*', rules that add nothing, what no session reaches.
std::vector<Diagnostic> find_odd_host_rules(const Policy &policy);

// The same of projects.mask, projects.protect and config.classes: wildcards that match less than they seem to, or stand for nothing.
std::vector<Diagnostic> find_odd_patterns(const Policy &policy);

// The files with the keys of providers, as a start reads them.
void check_key_files(HostCheck &check);

} // namespace pi_agent
