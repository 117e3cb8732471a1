// A real session on this host, whose program tries what the sandbox is to refuse: for pi-agentctl doctor, and the end of apply.
#pragma once

#include "admin/diagnose/user_view.hpp"
#include "common/decide/decision.hpp"
#include "common/policy/policy.hpp"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

struct CanaryAnswer {
    std::string what, expected, seen;
    bool right = false;
};

// What a canary found.
struct CanaryReport {
    SandboxMethod method = SandboxMethod::systemd;
    std::string user;                  // empty: nobody of the policy could be taken
    std::string directory;             // where it was started
    std::vector<CanaryAnswer> answers; // none: no session came about
    std::vector<std::string> said;     // by pi, a line each
    int status = 0;                    // of pi
    [[nodiscard]] std::vector<CanaryAnswer> wrong() const;
    [[nodiscard]] bool is_good() const;
};

// Starts `pi --pi-agent-canary` as `name`, or as the first user of the policy who has a usable root, in such a root: by the very path of a
// session, through sudo; by root. The answers come through processes of that user, and are recorded as the user's word. Throws Failure.
CanaryReport run_canary(const Policy &policy, const Observer &observer, const std::optional<std::string> &name);

// The same as the first user of the policy for whom `can_try` is true and whose session comes about: what keeps one user from starting (a
// broken configuration) says nothing of the sandbox. After a few it gives up, and reports the first.
using CanTry = std::function<bool(const Account &user, const AccessRules &rules)>;
CanaryReport try_sandbox(const Policy &policy, const Observer &observer, const CanTry &can_try);

// "the sandbox (systemd) was tried as alice in /srv/app: all 93 probes passed".
std::string to_text(const CanaryReport &report);
nlohmann::json to_json(const CanaryReport &report);

// Users of the policy by name, members of groups as of now; each once.
std::vector<std::string> users_of(const Policy &policy);

} // namespace pi_agent
