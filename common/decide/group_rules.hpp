// The entries of the policy that apply to one caller, as one: those of their groups side by side, and their own over them.
#pragma once

#include "common/base/problems.hpp"
#include "common/decide/decision.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pi_agent {

// Made only by find_entries.
struct CallersEntries {
    struct OfGroup {
        const UserEntry *entry;
        Gid group;
    };
    const UserEntry *own = nullptr;
    std::vector<OfGroup> groups; // beside an own entry, only those that say something for sessions
};

CallersEntries find_entries(const Policy &policy, const Account &caller);

// What a caller with these entries is granted: the part of find_access_rules (common/decide/decision.hpp) that knows of the caller's
// account its name, number and home alone.
std::variant<AccessRules, NotAuthorised> rules_by(const Policy &policy, const Account &caller, const CallersEntries &entries,
                                                  const std::string &policy_file);

// What the entries of one caller say together.
struct JoinedRules {
    Rules rules;
    Environment env;
    EnvironmentPlaces env_where;
};

// What two groups set differently has no right answer, unless the caller's own entry says it.
class GroupJoin {
public:
    GroupJoin(std::string caller, const UserEntry *own) : caller_(std::move(caller)), own_(own) {}

    void take(const UserEntry &entry, const std::optional<std::string> &value, const char *name, std::optional<std::string> &into);
    void take_rules(const UserEntry &entry);
    void take_env(const UserEntry &entry);
    // The groups' rules with the caller's own entry laid over them. Throws PolicyError with all contradictions. Call it once.
    JoinedRules finish();

private:
    void report(const UserEntry &entry, const std::string &name);

    std::string caller_;
    const UserEntry *own_;
    JoinedRules joined_;
    Problems problems_;
};

} // namespace pi_agent
