// pi-agentctl doctor: a real session on this host, whose program tries what the sandbox is to refuse. `apply` ends with the same.
#pragma once

#include "admin/user_view.hpp"
#include "common/policy.hpp"

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

struct WrongAnswer {
    std::string what, expected, seen;
};

// What a canary found.
struct CanaryReport {
    std::string user;      // empty: nobody of the policy could be taken
    std::string directory; // where it was started
    int answers = 0;       // how many things it looked at; none: no session came about
    std::vector<WrongAnswer> wrong;
    std::vector<std::string> said; // by pi, a line each
    int status = 0;                // of pi
    [[nodiscard]] bool is_good() const noexcept { return answers > 0 && wrong.empty() && status == 0; }
};

// Starts `pi --pi-agent-canary` as `name`, or as the first user of the policy who has a usable root, in such a root: by the very path of a
// session, through sudo. Throws Failure.
CanaryReport run_canary(const Policy &policy, const Observer &observer, const std::optional<std::string> &name);

// "the sandbox (systemd) was tried as alice in /srv/app: all 93 answers are as they are to be".
std::string to_text(const CanaryReport &report, SandboxMethod method);

// The command. Throws Failure(unavailable) when anything is not as it is to be.
void run_doctor(const std::optional<std::string> &user_name, bool json, std::ostream &out);

} // namespace pi_agent
