// A copy of the whole user database, for a command that asks about thousands of accounts (admin/host/account_table.cpp). The runner
// makes no copy: each of its answers is the database's own.
#pragma once

#include "common/host/account.hpp"

#include <unordered_map>

namespace pi_agent {

struct AccountTable {
    std::unordered_map<std::string, Account> accounts;
    std::unordered_map<uid_t, std::string> names;
    std::unordered_map<std::string, Gid> groups;
    std::unordered_map<gid_t, std::string> group_names;
};

// From now on the look-ups of common/host/account.hpp answer from the table that `find` returns, and ask the database where it returns
// none.
void answer_from_table(const AccountTable *(*find)());

} // namespace pi_agent
