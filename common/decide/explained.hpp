// What people are told of a policy; a start needs none of it.
#pragma once

#include "common/decide/decision.hpp"
#include "common/policy/policy_sections.hpp"

namespace pi_agent {

// --- All that levels can say, as text, each value with the place that says it: for explain, why and show.
struct EffectiveValue {
    std::string key;            // of the whole policy: "limits.memory"
    std::string value;          // as YAML in one line; empty for a key without value and default
    std::optional<SaidAt> said; // unset: the default
};

// The values of a policy that policy_for, policy_in, granted or narrowed made, in the order of the table of keys.
std::vector<EffectiveValue> effective_values(const Policy &policy);

// --- Secrets in a policy, which every user of the host can read.

// By its name (API_KEY, githubToken), or because the value is an address with a password.
bool looks_secret(const std::string &name, const std::string &value);

// Variables whose name or value looks like a secret. Not an error: `check` warns.
std::vector<Diagnostic> find_exposed_secrets(const Policy &policy);

// --- How a node of the cluster is asked for.

constexpr const char *default_srun = "/usr/bin/srun";
constexpr const char *job_name = "pi"; // unless somebody names the job otherwise

// The program that asks for a job.
std::string srun_of(const Policy &policy);

// Options of srun for one task on one node: as much of it as the limits allow a session, and what the policy says of the job.
std::vector<std::string> job_options(const Policy &policy, const std::string &name);

// srun's whole command line for a session of this policy, without its own name: the job, and `command` on the node, whose input and output
// are srun's.
std::vector<std::string> srun_arguments(const Policy &policy, const std::vector<std::string> &command);

// --- The bytes that escape_for_display() was given. A sequence that it does not write stays as it is.
std::string without_escapes(std::string_view shown);

// --- Keys in words, for docs/reference/policy.md and the manual.

// "Also `users.NAME.network`." for keys that users or roots have, too; or nothing.
std::string levels_text(const PolicyKey &key);

// "a whole number with `K`, `M`": the form of its value in Markdown, literal words in backquotes.
std::string form_text(const PolicyKey &key);

// The policy's keys by what an administrator wants to do, each task with one example: the order of the reference page and the manual.
struct PolicyTask {
    std::string_view title;   // of a section: "Limits"
    std::string_view keys;    // paths, separated by spaces; each includes everything below it that no other task names
    std::string_view example; // lines of YAML, a policy together with `version: 1` and, where it names no users, these
};

std::span<const PolicyTask> policy_tasks() noexcept;

// The keys of a task, in the order of the table. Every key has one task, except those that repeat one for a user or root: they are told
// with it.
std::vector<const PolicyKey *> policy_keys_of(const PolicyTask &task);

// --- Whether a session reaches a host, and which rule says so: for people who ask, outside and inside (host_access.cpp). The gate compares
// by the same code (common/policy/host_rule.hpp).

enum class Reach {
    yes,
    no,
    unknown, // a list of addresses knows no names
};

struct HostAccess {
    Reach reach;
    std::string rule;          // as a sentence's end: "a rule names it (*.example.org)"
    std::string key;           // of the policy, that would change it: "network.hosts"
    Position where;            // of what says so; of no file where it is the default
    bool may_be_added = false; // by the user, for one session
};

// What people ask about: "github.com", "[::1]:80", "https://github.com/x". None where that does not name one host with a port.
std::optional<HostRule> parse_host_question(const std::string &text);

// Of a policy as it holds for the session. `asked` is one host (parse_host_question).
HostAccess host_access(const NetworkPolicy &network, const std::vector<ProviderRule> &providers, const HostRule &asked);

// Whether the gate asks the policy's proxy for it (network.via).
bool goes_by_proxy(const NetworkPolicy &network, const HostRule &asked);

// Who asked with this text, and was answered about that host, may have meant a file: a line that says so, or nothing.
std::string hint_of_file(const std::string &question, const HostRule &taken_for);

} // namespace pi_agent
