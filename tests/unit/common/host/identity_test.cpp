// Claiming root, and giving it up for good: common/host/identity.hpp
#include "common/host/identity.hpp"

#include "common/base/error.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <fstream>
#include <grp.h>
#include <sstream>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace identity_test {

namespace {

constexpr uid_t no_id = static_cast<uid_t>(-1);

Account somebody(uid_t uid, gid_t gid, std::vector<gid_t> groups)
{
    return Account{"somebody", Uid(uid), Gid(gid), "/nonexistent", std::move(groups)};
}

// "real,effective,saved,file-system", as the kernel tells it; `name` is Uid or Gid.
std::string status_line(const std::string &name)
{
    std::ifstream file("/proc/self/status");
    std::string line;
    while (std::getline(file, line))
        if (line.compare(0, name.size() + 1, name + ":") == 0) {
            std::istringstream words(line.substr(name.size() + 1));
            std::string text;
            for (std::string word; words >> word;)
                text += (text.empty() ? "" : ",") + word;
            return text;
        }
    return "no line";
}

} // namespace

TEST_CASE("whoever is not root with all three ids cannot claim it" * doctest::skip(not_root()))
{
    struct Row {
        std::string what;
        uid_t real, effective, saved;
    };
    for (const Row &row : {Row{"a user", 12345, 12345, 12345}, Row{"a setuid program", 12345, 0, 0}, Row{"root in disguise", 0, 12345, 0},
                           Row{"one who can come back", 0, 0, 12345}}) {
        CAPTURE(row.what);
        CHECK(in_child([&] {
                  if (::setresuid(row.real, row.effective, row.saved) != 0) return std::string("setresuid failed");
                  const Caught caught = failure_of([] { return AsRoot::claim(); });
                  return std::to_string(caught.status) + " " + caught.text;
              }) == "77 only root can run this program; users run pi");
    }
}

TEST_CASE("claiming root leaves the groups of whoever started us" * doctest::skip(not_root()))
{
    CHECK(in_child([] {
              const std::vector<gid_t> groups = {4, 12345};
              if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(12345, 0, 12346) != 0) return std::string("set-up failed");
              static_cast<void>(AsRoot::claim());
              return status_line("Groups") + "|" + status_line("Gid");
          }) == "|0,0,0,0");
}

TEST_CASE("becoming a user takes exactly its ids and groups, and no capability stays" * doctest::skip(not_root()))
{
    struct Row {
        Account account;
        std::string groups;
    };
    const std::vector<Row> rows = {
        {somebody(12345, 12346, {12346}), "12346"},
        {somebody(12345, 12346, {12346, 7, 9}), "7,9,12346"},
        {somebody(12345, 12346, {}), ""},
        {somebody(12345, 12346, {9, 9, 9}), "9,9,9"},
        {somebody(1, 1, {1}), "1"},
        {somebody(no_id - 1, no_id - 1, {no_id - 1}), "4294967294"},
    };
    for (const auto &row : rows) {
        const std::string uid = std::to_string(row.account.uid.value());
        const std::string gid = std::to_string(row.account.gid.value());
        CAPTURE(uid);
        const auto four = [](const std::string &id) { return id + "," + id + "," + id + "," + id; };
        const std::string seen = in_child([&] {
            const std::vector<gid_t> before = {0, 4, 27};
            if (::setgroups(before.size(), before.data()) != 0) return std::string("set-up failed");
            const AsUser user = become_user(AsRoot::claim(), row.account);
            return std::to_string(user.uid().value()) + " " + status_line("Uid") + " " + status_line("Gid") + " " + status_line("Groups") +
                   " " + status_line("CapPrm") + " " + status_line("CapEff") + " " + status_line("NoNewPrivs") + " " +
                   std::to_string(::prctl(PR_GET_DUMPABLE));
        });
        CHECK(seen == uid + " " + four(uid) + " " + four(gid) + " " + row.groups + " 0000000000000000 0000000000000000 1 0");
    }
}

TEST_CASE("nobody becomes root or nobody-at-all by this way" * doctest::skip(not_root()))
{
    for (const auto &account : {somebody(0, 12345, {}), somebody(no_id, 12345, {}), somebody(12345, no_id, {}), somebody(0, 0, {0})}) {
        CAPTURE(account.uid.value());
        CHECK(in_child([&] {
                  const Caught caught = failure_of([&] { return become_user(AsRoot::claim(), account); });
                  return std::to_string(caught.status) + " still " + std::to_string(::geteuid());
              }) == "70 still 0");
    }
}

TEST_CASE("there is no way back to root afterwards" * doctest::skip(not_root()))
{
    CHECK(in_child([] {
              static_cast<void>(become_user(AsRoot::claim(), somebody(12345, 12346, {12346})));
              std::string worked;
              if (::setuid(0) == 0) worked += "setuid ";
              if (::seteuid(0) == 0) worked += "seteuid ";
              if (::setreuid(0, 0) == 0) worked += "setreuid ";
              if (::setresuid(0, 0, 0) == 0) worked += "setresuid ";
              if (::setgid(0) == 0) worked += "setgid ";
              if (::setgroups(0, nullptr) == 0) worked += "setgroups ";
              return worked + "| " + status_line("Uid");
          }) == "| 12345,12345,12345,12345");
}

TEST_CASE("a child's claim leaves the parent root" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    const std::string child = in_child([&] {
        static_cast<void>(become_user(root.for_child(), somebody(12345, 12346, {})));
        return status_line("Uid");
    });
    CHECK(child == "12345,12345,12345,12345");
    CHECK(status_line("Uid") == "0,0,0,0");
}

} // namespace identity_test
