// Single files of /etc in the minimal view: runner/plan/host_view.hpp
#include "runner/plan/host_view.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace host_files_test {

namespace {

Account account(const std::string &name, uid_t uid, const std::string &home)
{
    return Account{name, Uid(uid), Gid(uid), home, {}};
}

} // namespace

TEST_CASE("passwd holds a line each, the agent's with its home and a shell")
{
    const std::vector<Account> accounts = {account("root", 0, "/root"), account("pi-agent", 990, "/nonexistent"),
                                           account("alice", 1000, "/home/alice")};
    CHECK(passwd_text(accounts, "pi-agent", "/var/lib/pi-agent/users/alice/home") ==
          "root:x:0:0::/root:/usr/sbin/nologin\n"
          "pi-agent:x:990:990::/var/lib/pi-agent/users/alice/home:/bin/bash\n"
          "alice:x:1000:1000::/home/alice:/usr/sbin/nologin\n");
}

TEST_CASE("a name of a directory service that would begin a field or a line is left out")
{
    CHECK(passwd_text({account("a:b", 1000, "/home/a"), account("a\nroot", 1001, "/home/a"), account("c", 1002, "/home/x:0:0")}, "pi-agent",
                      "/h")
              .empty());
    CHECK(group_text({{"a:b", Gid(5)}, {"x\n", Gid(6)}, {"", Gid(7)}}).empty());
    CHECK(passwd_text({account("CORP\\alice smith", 70001, "/home/alice")}, "pi-agent", "/h") ==
          "CORP\\alice smith:x:70001:70001::/home/alice:/usr/sbin/nologin\n");
}

TEST_CASE("a group is written once")
{
    CHECK(group_text({{"root", Gid(0)}, {"users", Gid(100)}, {"users", Gid(100)}}) == "root:x:0:\nusers:x:100:\n");
}

} // namespace host_files_test
