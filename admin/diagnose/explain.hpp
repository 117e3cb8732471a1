// What a user can reach, whether starts would be, and both in words: `pi-agentctl explain` and `why`.
#pragma once

#include "admin/host/host_things.hpp"

#include "common/as_user/user_paths.hpp"
#include "common/decide/explained.hpp"
#include "runner/root/kernel/host_facts.hpp"
#include "runner/wire/user_files.hpp"

namespace pi_agent {

// --- What a user can reach, found out with that user's rights: as the user, or as root through a child that became the user.

// How far a user may write to a directory. A session has fewer groups than its user.
enum class Writing { none, as_others_let, as_owner };

struct Finding {
    enum class Kind { usable, unusable, unknown };
    Kind kind = Kind::unusable;
    std::string text;                     // the canonical path, or why not
    std::uint64_t mount = 0;              // that holds what is usable: its id
    std::string file_system_problem = {}; // why a start that shows it is still refused; empty if no reason is known
    std::string mapping_problem = {};     // the same for a start that maps owners (projects.ownership)
    std::string danger = {};              // of a root: who else can change what it is, or where it lies (admin/diagnose/faults.hpp)
    std::string remedy = {};              // against that
    Writing writing = Writing::none;      // to what is usable
    bool is_gone = false;                 // a root that does not exist

    // From a child, whose word is its user's.
    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.kind, Kind::unusable, "a finding of no kind");
        archive(self.text, self.mount, self.file_system_problem, self.mapping_problem, self.danger, self.remedy, self.is_gone);
        archive.bounded(self.writing, Writing::as_owner, "a finding without a right to write");
    }
};

// The account that looks. Root can look for everybody, any other account only for itself.
class Observer {
public:
    // The process's own identity, claimed once.
    static Observer self();

    [[nodiscard]] bool can_look_for(const Account &user) const noexcept;
    // Set when this process is root.
    [[nodiscard]] const std::optional<AsRoot> &root() const noexcept { return root_; }

    // One finding for each root; all unknown if this process cannot look for `user`.
    [[nodiscard]] std::vector<Finding> resolve_roots(const std::vector<RootSpec> &roots, const Account &user) const;
    [[nodiscard]] std::vector<Finding> resolve_roots(const AccessRules &rules, const Account &user) const;
    // The canonical path of a directory, as `user` reaches it.
    [[nodiscard]] Finding resolve_directory(const std::string &path, const Account &user) const;
    // Where agents of `user` write. Throws Failure when it cannot be found out; only where can_look_for(user).
    [[nodiscard]] AgentPlaces agent_places(const Policy &policy, const AccessRules &rules, const Account &user) const;
    // One finding for each absolute path, where one can be made: the agents' directory that the path leads into, or "".
    [[nodiscard]] std::vector<Finding> agents_on_way(const Policy &policy, const AccessRules &rules, const Account &user,
                                                     const std::vector<std::string> &paths) const;
    // What a start of the user leaves out because agents can have made it lead elsewhere, each as a text (common/as_user/user_paths.hpp).
    [[nodiscard]] std::vector<std::string> links_out(const Policy &policy, const AccessRules &rules, const Account &user) const;
    // What a session would find of the lists in the home. Throws Failure when it cannot be found out; only where can_look_for(user).
    [[nodiscard]] OpenedHome find_home_directories(const ToolchainsPolicy &toolchains, const Account &user, const AccessRules &rules) const;

private:
    Observer() = default;
    std::optional<AsRoot> root_;
};

// What the installed policy grants to a user. Empty for a user without rules, and for one whose entries contradict each other: that
// concerns only this user, whose own start reports it, and find_refused_starts().
std::optional<AccessRules> rules_of_user(const Policy &policy, const Account &user);

// --- Whether starts would be, without one: the decision of wrapper and runner (common/decide/decision.hpp) on what pi-agentctl finds of
// the host.

// A start that would be.
struct DryStart {
    RootCandidate root;
    Policy policy; // as it holds there
};

// A start of `user` in a directory that exists. `callers` is the policy as it holds for them, `roots` has a finding of each root of the
// rules. Throws the Failure with which the start would end.
DryStart dry_start(const Account &user, const AccessRules &rules, Policy callers, const std::vector<Finding> &roots,
                   const Finding &directory);

// --- By the policy's text alone, without looking for a root on the host: what the entries of a user say together.

// A start that the policy refuses.
struct RefusedStart {
    std::string root;            // as the policy writes it
    std::vector<Diagnostic> why; // what the start says
    [[nodiscard]] std::string text() const { return PolicyError(why).what(); }
};

// The starts in their roots that the policy refuses to a user with these rules. `of_all` is the policy without users. Throws PolicyError if
// their entries contradict each other.
std::vector<RefusedStart> refused_starts(const Policy &of_all, const Account &user, const AccessRules &rules);

using FindUser = std::function<std::optional<Account>(const std::string &name)>;

// The user database: this host's, or a test's.
struct Database {
    MembersOf members_of = group_members;
    FindUser find_user = [](const std::string &name) { return find_account(name); };
};

// Of all users of the policy, each with its place and whom it keeps from starting. Of users with the same entries it tells one, and how
// many they are.
std::vector<Diagnostic> find_refused_starts(const Policy &policy, const Database &database = {});

// Of accounts that could be: members of a group without members, or of two groups at once that share no account.
std::vector<Diagnostic> find_possible_refusals(const Policy &policy, const Database &database = {});

// --- The variables that a start would give to the agent, and which layer each comes from, for pi-agentctl explain.

struct ExplainedVariable {
    std::string name;
    std::string value; // empty when hidden
    bool is_hidden;    // it looks like a secret
    std::string from;
};

struct ExplainedEnvironment {
    std::vector<ExplainedVariable> variables; // by name
    std::vector<std::string> notes;           // files that were not examined or cannot be used, and omitted variables
};

// Without the variables that describe the user's terminal, which are the lowest layer.
ExplainedEnvironment explain_environment(const Policy &policy, const AccessRules &rules, const Observer &observer, const Account &user,
                                         const std::string &home);

std::string to_text(const ExplainedEnvironment &environment);
nlohmann::json to_json(const ExplainedEnvironment &environment);

// --- The limits of a session, for pi-agentctl explain and check.

std::vector<std::string> texts_of(const std::vector<PolicyPath> &paths);

struct ExplainedLimits {
    LimitsPolicy limits;
    std::vector<IdleLimit> idle; // on this host
    std::string problem;         // of a share of this host's memory; empty without one
    std::string disk = {};       // why no quota holds agents to limits.disk here; empty if one does, or without the key
};

ExplainedLimits explain_limits(const LimitsPolicy &limits);

std::string to_text(const ExplainedLimits &explained);
nlohmann::json to_json(const ExplainedLimits &explained);

// A limit of the policy that this host cannot enforce is a problem. A default that it cannot enforce is a line of the text.
// `whose`: what is before their keys at this level, such as "users.alice.".
void check_limits(const LimitsPolicy &limits, const std::string &whose, Problems &problems);
std::string idle_defaults(const Policy &policy);

// --- limits.disk, which a quota of the file system holds agents to, or nothing does.

// `policy`: as it holds for the user.
std::string find_disk_problem(const Policy &policy);

// A level that says something of it, where nothing holds agents to it. It is an error where no session starts then, and told otherwise.
struct IdleDiskLimit {
    Diagnostic told;
    WithoutQuota choice = {};
};
std::vector<IdleDiskLimit> find_idle_disk_limits(const Policy &policy);

// The errors among them.
void check_disk_limits(const Policy &policy, Problems &problems);

// --- What a session would see of its user's home, and which entries of the lists do not exist, for pi-agentctl explain.

struct ExplainedHomeDirectory {
    std::string path;   // relative to the user's home
    std::string inside; // relative to the agent's; empty: at its own path alone
    Finding finding;    // usable; unusable, with the reason or without one if it is missing; or not verified
    bool is_at_own_path = false;
    bool is_default = false; // not named by the policy
};

struct ExplainedToolchains {
    std::vector<ExplainedHomeDirectory> readable;
    std::vector<ExplainedHomeDirectory> caches;
};

ExplainedToolchains explain_toolchains(const ToolchainsPolicy &policy, const Observer &observer, const Account &user,
                                       const AccessRules &rules);

std::string to_text(const ExplainedToolchains &toolchains);
nlohmann::json to_json(const ExplainedToolchains &toolchains);

// --- pi-agentctl explain: what the policy grants to a user, and what a start of pi in a directory would be.

struct ExplainedRoot {
    GrantedRoot granted;
    Finding finding;
};

// One directory compared with the roots; `allowed` is unset if a root or the directory could not be verified.
struct ExplainedDirectory {
    std::string path;
    std::optional<bool> allowed;
    std::string text; // the canonical root that holds it, or why not
    Position where;   // of that root
};

struct Explanation {
    Account user;
    Policy policy; // as it holds for the user and, where one is explained and allowed, in the directory
    std::string policy_file;
    std::variant<AccessRules, NotAuthorised> access;
    std::string home; // of the agent
    std::vector<ExplainedRoot> roots = {};
    std::optional<ExplainedDirectory> directory = {};
    ExplainedEnvironment environment = {};
    bool account_exists = false;
    std::variant<std::monostate, SystemdFeatures, Failure> systemd = {}; // of this host, when it was asked
    std::variant<std::monostate, HostView, Failure> shown = {};          // of this host, for root
    std::vector<std::string> missing_tools = {};                         // "fd", "rg"
    ExplainedToolchains toolchains = {};
    ExplainedLimits limits = {};
};

// The account to explain: the user of that name, or the caller. Throws Failure(usage) for root without a name, and if there is no such
// user.
Account account_to_explain(const std::optional<std::string> &name, const Observer &observer);

Explanation explain(const Policy &policy, const std::string &policy_file, const Observer &observer, const Account &user,
                    const std::optional<std::string> &directory);

// Its lines of `network` and `providers`; and their values.
std::string network_text(const Policy &policy);
void add_network(const Policy &policy, nlohmann::json &json);

std::string placement_text(const Policy &policy); // nothing where sessions run on this host
std::string said_text(const Policy &policy);      // which level says which value
nlohmann::json said_json(const Policy &policy);

std::string to_text(const Explanation &explanation);
nlohmann::json to_json(const Explanation &explanation);

// The command. Without `user_name` it explains the caller, and for root everybody, a line each. It explains the current directory unless
// `directory` names another.
struct ExplainOptions {
    std::optional<std::string> user, directory;
    bool all = false;
    bool json = false;
};
// On a terminal it prints on_one_screen(), unless `all`.
void run_explain(const ExplainOptions &options, std::ostream &out);

// Of to_text() what users ask for first, and what keeps them from starting.
std::string on_one_screen(const std::string &text);

// --- pi-agentctl show: all values that levels can say, as they hold for a user, and in a directory where one is given.

void run_show(const std::optional<std::string> &user_name, const std::optional<std::string> &directory, bool json, std::ostream &out);

// --- pi-agentctl explain WORD: a code of a message ("E77-root"), a fault of doctor ("sudo-rule"), or a key of the policy.

// Empty if there is no such word. Lines of at most 100 columns.
std::optional<std::string> explain_word(const std::string &word);

// --- pi-agentctl why: may the agent read or write a path, by which rule, and which key would change it. A session is asked.

struct WhyOptions {
    std::vector<std::string> paths; // or hosts; relative ones to the directory of the session
    std::optional<std::string> user, directory;
    bool json = false;
};

// The host that a question is about; none if it is about a path. A name without a port may be either: then it is a host where the directory
// has no entry of that name.
std::optional<HostRule> host_of_question(const std::string &text, const std::string &directory);

// The answer, by the policy alone: no session is asked.
std::string host_text(const HostRule &asked, const Policy &policy);
nlohmann::json host_json(const HostRule &asked, const Policy &policy);

// Starts one session as the user, in which a shell looks at the paths, if there are any. Throws Failure.
void run_why(const WhyOptions &options, std::ostream &out);

} // namespace pi_agent
