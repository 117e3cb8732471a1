// What the user database says of an account: the caller of pi, or an agent's account.
#pragma once

#include "common/base/ids.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

struct Account {
    std::string name;
    Uid uid;
    Gid gid;                   // primary group
    std::string home;          // absolute, as in the user database; not resolved
    std::vector<gid_t> groups; // all groups, the primary one included
};

// Each returns nothing when there is no such entry, and throws SystemFailure when the database fails.
std::optional<Account> find_account(Uid uid);
std::optional<Account> find_account(const std::string &name);
std::optional<Gid> find_group(const std::string &name);
// For people: the name, or "uid 1000" where the account is gone.
std::string name_or_number(Uid uid);
std::optional<std::string> group_name(Gid gid);

// Whatever their order, which no database promises, and however often each is there.
bool have_same_groups(const Account &one, const Account &other);

// A name of a user or group that a policy can have, as directory services give them too (CORP\\alice, Alice.Smith@example.org, a space
// inside): at most 256 bytes, none of which means something else to a shell's or sudo's list, to a terminal or in a path; no number.
bool is_account_name(const std::string &name) noexcept;

// How paths name a user: as the database does where that is a plain name, else by "@" and the uid, which is none.
std::string short_name(const Account &user);
std::string short_name_of(const std::string &user);      // of who is not in the database: the same
std::string user_of_short_name(const std::string &name); // the other way; for people: "uid 1000" where the account is gone

// A name that is safe in sudoers, unit properties and paths: [a-z_][a-z0-9_.-]*, at most 32 bytes, not only digits, no "..".
bool is_plain_name(const std::string &name) noexcept;

} // namespace pi_agent
