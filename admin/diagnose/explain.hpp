// pi-agentctl explain: what the policy grants to a user, and what a start of pi in a directory would come to.
#pragma once

#include "admin/diagnose/explain_environment.hpp"
#include "admin/diagnose/explain_limits.hpp"
#include "admin/diagnose/explain_toolchains.hpp"
#include "admin/diagnose/user_view.hpp"
#include "common/base/error.hpp"
#include "common/decide/access_rules.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/plan/systemd_features.hpp"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

namespace pi_agent {

struct ExplainedRoot {
    GrantedRoot granted;
    Finding finding;
};

// One directory held against the roots; `allowed` is unset when a root or the directory could not be verified.
struct ExplainedDirectory {
    std::string path;
    std::optional<bool> allowed;
    std::string text; // the canonical root that holds it, or why not
    Position where;   // of that root
};

struct Explanation {
    Account user;
    std::string policy_file;
    bool wrapper_enabled;
    Position wrapper_where;
    std::variant<AccessRules, NotAuthorised> access;
    std::vector<ExplainedRoot> roots;
    std::optional<ExplainedDirectory> directory;
    ExplainedEnvironment environment;
    bool account_exists = false;
    std::string home;                                               // of the agent
    std::string program;                                            // the agent's
    std::variant<std::monostate, SystemdFeatures, Failure> systemd; // of this host, when it was asked
    SandboxPolicy sandbox;
    bool git_identity = true;
    bool box_notes = true;
    ScratchKind scratch = ScratchKind::disk;
    View view = View::minimal;
    std::vector<PolicyPath> view_paths;
    std::variant<std::monostate, HostView, Failure> shown; // of this host, for root
    NetworkPolicy network;
    ProjectsPolicy projects;
    std::vector<std::string> missing_tools = {}; // "fd", "rg"
    ExplainedToolchains toolchains = {};
    ExplainedLimits limits = {};
};

// Who is asked about: the user of that name, or whoever asks. Throws Failure(usage) for root without a name, and where there is no such
// user.
Account account_to_explain(const std::optional<std::string> &name, const Observer &observer);

Explanation explain(const Policy &policy, const std::string &policy_file, const Observer &observer, const Account &user,
                    const std::optional<std::string> &directory);

std::string to_text(const Explanation &explanation);
nlohmann::json to_json(const Explanation &explanation);

// The command. Without `user_name` it explains the caller, in the current directory unless `directory` says another, and to root everybody
// (admin/diagnose/overview.hpp).
void run_explain(const std::optional<std::string> &user_name, const std::optional<std::string> &directory, bool json, std::ostream &out);

} // namespace pi_agent
