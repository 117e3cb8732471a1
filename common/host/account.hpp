// An account from the user database: the caller of pi, or an agent's account.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

namespace pi_agent {

// User and group ids as types that cannot be mixed up, have no arithmetic, and are never "unset".
template <typename Number, typename Kind>
class Id {
public:
    explicit constexpr Id(Number value) noexcept : value_(value) {}
    [[nodiscard]] constexpr Number value() const noexcept { return value_; }
    friend constexpr bool operator==(Id left, Id right) noexcept = default;

private:
    Number value_;
};

using Uid = Id<uid_t, struct OfUser>;
using Gid = Id<gid_t, struct OfGroup>;

struct Account {
    std::string name;
    Uid uid;
    Gid gid;                   // primary group
    std::string home;          // absolute, as in the user database; not resolved
    std::vector<gid_t> groups; // all groups, the primary one included
};

// Each returns empty if there is no such entry, and throws SystemFailure if the database fails.
std::optional<Account> find_account(Uid uid);
std::optional<Account> find_account(const std::string &name);
std::optional<Gid> find_group(const std::string &name);
// For people: the name, or "uid 1000" if the account is gone.
std::string name_or_number(Uid uid);
std::optional<std::string> group_name(Gid gid);

// Ignores their order, which no database promises, and duplicates.
bool have_same_groups(const Account &one, const Account &other);

// A user or group name that a policy accepts, including those of directory services (CORP\\alice, Alice.Smith@example.org, a space inside).
// At most 256 bytes, none with a meaning in lists of shell and sudo, on terminals or in paths; not a number.
bool is_account_name(const std::string &name) noexcept;

// A user's name in paths: the database's name if it is plain, otherwise "@" and the uid, which is not a plain name.
std::string short_name(const Account &user);
// Root's, with a directory for each user in which that user keeps what undo needs (common/undo).
constexpr const char *undo_path = "/var/lib/pi-agent/undo";
std::string short_name_of(const std::string &user);      // the name itself for a user who is not in the database
std::string user_of_short_name(const std::string &name); // the reverse; for people: "uid 1000" if the account is gone

// A name that is safe in sudoers, unit properties and paths: [a-z_][a-z0-9_.-]*, at most 32 bytes, not only digits, no "..".
bool is_plain_name(const std::string &name) noexcept;

// --- Groups whose members get past file permissions.

// Membership amounts to root, or gives access to devices, logs and secrets that no agent may see: root, sudo, docker, disk and similar.
bool is_privileged_group(std::string_view name);

// True for gid 0 and for the gids that this host gives to such groups. Throws SystemFailure if the group database fails.
bool is_privileged_group(Gid gid);

// --- A copy of the whole user database, for a command that asks about thousands of accounts (admin/host/account_table.cpp). The runner
// makes no copy: each of its answers is the database's own.

struct AccountTable {
    std::unordered_map<std::string, Account> accounts;
    std::unordered_map<uid_t, std::string> names;
    std::unordered_map<std::string, Gid> groups;
    std::unordered_map<gid_t, std::string> group_names;
};

// From now on these look-ups answer from the table that `find` returns, and ask the database where it returns
// none.
void answer_from_table(const AccountTable *(*find)());

} // namespace pi_agent
