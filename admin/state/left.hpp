// Who left the policy or this host, and what of their agents is still here: homes, and accounts that apply made.
#pragma once

#include "admin/host/accounts.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pi_agent {

// --- Whether somebody left. A directory service that does not answer must not look as if everybody had.

// How a host is asked for people; each is empty for those whom it does not know.
struct UserDatabase {
    std::function<std::optional<Account>(const std::string &name)> by_name;
    std::function<std::optional<Account>(Uid uid)> by_uid;
    std::function<std::optional<Gid>(const std::string &group)> group;
    MembersOf members;
    std::vector<std::string> services = {}; // besides files of this host, by the names of nsswitch.conf(5): each may not answer just now
};
UserDatabase user_database();

// Those of the line `passwd` of nsswitch.conf(5), besides files of this host.
std::vector<std::string> services_of_users(const std::string &nsswitch);

class People {
public:
    // Borrows the policy. `gone`: who left this host by the administrator's word. Throws Failure(configuration) if the host does not know a
    // user or group that the policy names: then nobody can tell who left, and who only cannot be found just now.
    People(const Policy &policy, UserDatabase database, std::vector<std::string> gone = {});

    // "alice left the policy", "alice left this host"; empty for those who stay, and for those of whom nobody can tell. `name` as in paths
    // (short_name).
    [[nodiscard]] std::string why_left(const std::string &name) const;

    // Why it is not known that somebody left who seems to have; empty if it is. A directory service that is down, or that knows only whom
    // it has cached, answers as if it did not know them.
    [[nodiscard]] std::string doubt_about(const std::string &name) const;

private:
    [[nodiscard]] std::optional<Account> find(const std::string &name) const;

    const Policy &policy_;
    UserDatabase database_;
    std::vector<std::string> gone_;
    std::set<std::string> named_;   // by the policy, or as a member by the database of a group that the policy names
    bool has_unknown_ones_ = false; // among these members
};

// --- What is still here of them.

struct Left {
    enum class Kind { home, account };
    Kind kind = Kind::home;
    std::string user;    // whose agent's
    std::string name;    // of the user in paths, or of the account
    std::string account; // of the agent
    std::string path;    // of the home, for display
    std::string why;     // it is not needed any more
    std::string kept;    // why it must stay; empty for what `prune` removes
    bool operator==(const Left &) const = default;
};

// Homes first. What has another owner, group or maker than pi-agent gave it stays, and whatever a living session may use.
// `gone` as above; throws Failure(usage) for one whom this host knows.
std::vector<Left> find_left(const AsRoot &root, const Policy &policy, const std::vector<std::string> &gone = {});

// "the home of alice's agent, /var/lib/pi-agent/users/alice", "the account pi-agent-alice".
std::string to_text(const Left &left);

} // namespace pi_agent
