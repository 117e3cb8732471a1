// Two accounts that every Debian has, for tests of what runs as somebody: the user's side and the agent's side.
#pragma once

#include "common/host/account.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent::test {

inline Account known_account(const std::string &name)
{
    const auto account = find_account(name);
    REQUIRE_MESSAGE(account, "this host has no account ", name);
    return *account;
}

inline Account user_account()
{
    return known_account("nobody");
}

inline Account agent_account()
{
    return known_account("daemon");
}

// Gives `path` to `owner`, a link itself and not what it leads to.
inline void give(const std::string &path, const Account &owner)
{
    REQUIRE(::lchown(path.c_str(), owner.uid.value(), owner.gid.value()) == 0);
}

inline void set_mode(const std::string &path, mode_t mode)
{
    REQUIRE(::chmod(path.c_str(), mode) == 0);
}

// Of a link itself.
inline mode_t mode_of(const std::string &path)
{
    struct stat facts {};
    REQUIRE(::lstat(path.c_str(), &facts) == 0);
    return facts.st_mode & 07777U;
}

// A directory of `owner`, private to it, in a place that everybody may pass through.
inline std::string make_private(const TemporaryDirectory &place, const std::string &name, const Account &owner)
{
    set_mode(place.path(), 0711);
    const std::string path = place.make(name);
    give(path, owner);
    set_mode(path, 0700);
    return path;
}

} // namespace pi_agent::test
