// Says, in words, what a start would be, and by which rules: `pi-agentctl explain` and `why`.
#pragma once

#include "admin/diagnose/user_view.hpp"
#include "common/decide/host_access.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/kernel/host_facts.hpp"

#include <nlohmann/json_fwd.hpp>

#include <ostream>

namespace pi_agent {

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

// What the policy's hardening refuses and lets through; no text where it says nothing.
std::vector<std::string> texts_of(const std::vector<PolicyPath> &paths);
std::string calls_text(const Policy &policy);
nlohmann::json calls_json(const Policy &policy);

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
std::string disk_text(const ExplainedLimits &explained); // lines of to_text

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

ExplainedToolchains explain_toolchains(const ToolchainsPolicy &policy, const Observer &observer, const Account &user);

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

std::string systemd_text(const Explanation &explanation);
nlohmann::json systemd_json(const Explanation &explanation);
std::string placement_text(const Policy &policy); // nothing where sessions run on this host
std::string said_text(const Policy &policy);      // which level says which value
nlohmann::json said_json(const Policy &policy);
std::string told_text(const Policy &policy); // what git and the agent are told, and what a session does otherwise
// The user's keys of which a session has copies, a line each.
std::string keys_text(const AccessRules &rules);

std::string to_text(const Explanation &explanation);
nlohmann::json to_json(const Explanation &explanation);

// The command. Without `user_name` it explains the caller, and for root everybody, a line each. It explains the current directory unless
// `directory` names another.
void run_explain(const std::optional<std::string> &user_name, const std::optional<std::string> &directory, bool json, std::ostream &out);

// --- pi-agentctl show: all values that levels can say, as they hold for a user, and in a directory where one is given.

void run_show(const std::optional<std::string> &user_name, const std::optional<std::string> &directory, bool json, std::ostream &out);

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
