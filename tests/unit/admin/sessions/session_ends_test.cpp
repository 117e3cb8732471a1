// Which sessions a policy does not allow any more: admin/sessions/sessions.hpp
#include "admin/sessions/sessions.hpp"

#include "support/failure.hpp"
#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace session_ends_test {

namespace {

const std::vector<LiveSession> sessions = {{"A", Uid(1000)}, {"B", Uid(1001)}, {"C", Uid(1002)}};

std::optional<Account> find(Uid uid)
{
    if (uid == Uid(1000)) return Account{"alice", uid, Gid(1000), "/home/alice", {}};
    if (uid == Uid(1001)) return Account{"bob", uid, Gid(1001), "/home/bob", {}};
    return std::nullopt;
}

std::string ends_under(const std::string &text)
{
    std::string ends;
    for (const auto &order : sessions_to_end(parse(text), sessions, find))
        ends += order.session + ": " + order.reason + "\n";
    return ends;
}

} // namespace

TEST_CASE("sessions end whose users the policy does not name, or who are gone")
{
    CHECK(ends_under("version: 1\nagent: {accounts: per-user}\nusers: {alice: {roots: [/srv/a]}}\n") ==
          std::string("B: the policy ") + policy_path +
              " does not authorise bob any more\nC: uid 1002 is not in the user database any more\n");
}

TEST_CASE("under the emergency stop all end")
{
    const std::string ends =
        ends_under("version: 1\nagent: {accounts: per-user}\nwrapper: {enable: false}\nusers: {alice: {roots: [/srv/a]}}\n");
    for (const char *session : {"A: ", "B: ", "C: "})
        CHECK(ends.find(std::string(session) + "the administrator has switched the agent off (") != std::string::npos);
}

TEST_CASE("the administrator's words for users are a line of text, or nothing ends")
{
    const auto status_of_words = [](const std::string &words) {
        return failure_of([&] {
                   require_harmless_message(words);
                   return 0;
               })
            .status;
    };
    for (const std::string &words :
         {std::string("a new kernel; back at 14:00"), std::string("“Wartung” – bis später"), std::string(500, 'x')})
        CHECK_MESSAGE(status_of_words(words) == 0, words);
    for (const std::string &words : {std::string(), std::string(501, 'x'), std::string("\033]0;title\a"), std::string("two\nlines"),
                                     std::string("a\0b", 3), std::string("a\rb"), std::string("\\x1b"), std::string("\xff"),
                                     std::string("\xc2\x9b"
                                                 "31m"),
                                     std::string("\xe2\x80\xae"
                                                 "desrever")})
        CHECK_MESSAGE(status_of_words(words) == 64, words);
}

TEST_CASE("where to look at those that do not end is said in words of their method")
{
    CHECK(where_to_look({{"A", "pi-agent-A.service", "pi-agent-alice"}, {"B", "pi-agent-B.service", "pi-agent-bob"}}) ==
          "systemctl status pi-agent-A.service pi-agent-B.service");
    CHECK(where_to_look({{"A", "", "pi-agent-alice"}, {"B", "", "pi-agent-alice"}}) == "ps -f -u pi-agent-alice"); // bwrap
    CHECK(where_to_look({{"A", "", ""}}) == "pi-agentctl sessions");
    CHECK(where_to_look({{"A", "pi-agent-A.service", ""}, {"B", "", "pi-agent-bob"}, {"C", "", ""}}) ==
          "systemctl status pi-agent-A.service; ps -f -u pi-agent-bob; pi-agentctl sessions");
}

} // namespace session_ends_test
