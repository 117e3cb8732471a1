// Which files make up the policy, for all and for one user: common/policy/policy_load.hpp.
#include "common/policy/policy_load.hpp"

#include "support/forked.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_sources_test {

namespace {

const std::string head = "version: 1\n";
const std::string alice = "users:\n  alice:\n    roots: [~/projects]\n";

} // namespace

TEST_CASE("a policy that is absent says where it was looked for")
{
    CHECK_THROWS_WITH_AS(static_cast<void>(load_policy("/usr/no-such-policy.yaml")),
                         doctest::Contains("/usr/no-such-policy.yaml: cannot open"), PolicyError);
}

TEST_CASE("a policy in a directory that others can write is refused")
{
    const TemporaryDirectory directory;
    const auto file = directory.write("policy.yaml", head + alice);
    CHECK_THROWS_WITH_AS(static_cast<void>(load_policy(file)), doctest::Contains("/tmp is writable by others than root"), PolicyError);
}

TEST_CASE("root's own policy and policy.d load in lexical order" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory("/run");
    const auto file = directory.write("policy.yaml", head + alice + "agent: {accounts: shared}\n");
    directory.make("policy.d");
    directory.write("policy.d/20-b.yaml", "users: {carol: {roots: [/srv/c]}}\n");
    directory.write("policy.d/10-a.yaml", "users: {bob: {roots: [/srv/b]}}\n");
    directory.write("policy.d/.hidden.yaml", "]");
    directory.write("policy.d/README", "]");
    const auto policy = load_policy(file);
    REQUIRE(policy.users.size() == 3);
    CHECK(policy.users[1].name == "bob");
    CHECK(policy.users[2].name == "carol");

    SUBCASE("but not with a file that others can write")
    {
        REQUIRE(::chmod((directory / "policy.d/10-a.yaml").c_str(), 0666) == 0);
        CHECK_THROWS_WITH_AS(static_cast<void>(load_policy(file)),
                             doctest::Contains("10-a.yaml cannot be trusted: it is writable by others than root (mode 0666)"), PolicyError);
    }
    SUBCASE("nor with one that its name would leave unread")
    {
        directory.write("policy.d/30-c.yml", "");
        CHECK_THROWS_WITH_AS(static_cast<void>(load_policy(file)), doctest::Contains("30-c.yml: is not read as a part of the policy"),
                             PolicyError);
    }
    SUBCASE("nor one larger than the limit")
    {
        directory.write("policy.d/30-c.yaml", std::string((1U << 20U) + 1, ' '));
        CHECK_THROWS_WITH_AS(static_cast<void>(load_policy(file)), doctest::Contains("is larger than 1048576 bytes"), PolicyError);
    }
}

TEST_CASE("a file of users.d is the entry of its user, and nothing else")
{
    const auto parse_with = [](const std::string &main_text, const std::vector<PolicySource> &more) {
        std::vector<PolicySource> sources = {{"/e/policy.yaml", head + "agent: {accounts: per-user}\n" + main_text}};
        sources.insert(sources.end(), more.begin(), more.end());
        return sources;
    };
    const auto policy = parse_policy(
        parse_with(alice, {{"/e/users.d/bob.yaml", "roots: [/srv/b]\nenv: {A: x}\n"}, {"/e/users.d/carol.yaml", "roots: [/srv/c]\n"}}));
    REQUIRE(policy.users.size() == 3);
    CHECK(policy.users[1].name == "bob");
    CHECK(policy.users[1].roots[0].text == "/srv/b");
    CHECK(policy.users[1].env.at("A") == "x");
    CHECK(to_string(policy.users[2].where) == "/e/users.d/carol.yaml:1:1");
    CHECK(parse_policy(parse_with("", {{"/e/users.d/bob.yaml", "roots: [/srv/b]\n"}})).users.size() == 1);

    const auto problem = [&](const std::string &text) { return problems_of(parse_with(alice, {{"/e/users.d/bob.yaml", text}})); };
    CHECK(
        contains(problem("roots: [/srv/b]\nrun_as: svc\n"), "/e/users.d/bob.yaml:2:1: users.bob.run_as: a file of users.d cannot say it"));
    CHECK(contains(problem("rots: [/srv/b]\n"), "users.bob.rots: unknown key; did you mean 'roots'?"));
    CHECK(contains(problem("users: {bob: {roots: [/srv/b]}}\n"), "users.bob.users: unknown key"));
    CHECK(contains(problem("# nothing\n"), "/e/users.d/bob.yaml"));
    CHECK(contains(problem("[\n"), "/e/users.d/bob.yaml:"));
    CHECK(contains(problems_of(parse_with(alice, {{"/e/users.d/alice.yaml", "roots: [/srv/a]\n"}})),
                   "/e/users.d/alice.yaml:1:1: users.alice: given twice, first at /e/policy.yaml:"));
    CHECK(contains(problems_of({{"/e/policy.yaml", head}, {"/e/users.d/bob.yaml", "roots: [/srv/b]\n"}}),
                   "agent.accounts: missing, and more than one user is possible"));
}

TEST_CASE("a start reads its own user's file alone, and decides as the whole policy would" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory("/run");
    const std::string per_user = head + "agent: {accounts: per-user}\n";
    const auto file = directory.write("policy.yaml", per_user + alice);
    directory.make("users.d");
    directory.write("users.d/bob.yaml", "roots: [/srv/b]\n");
    directory.write("users.d/carol.yaml", "roots: [/srv/c]\n");
    CHECK(load_policy(file).users.size() == 3);
    const auto for_bob = load_policy_for(file, "bob");
    REQUIRE(for_bob.users.size() == 2);
    CHECK(for_bob.users[1].name == "bob");
    CHECK(load_policy_for(file, "alice").users.size() == 1);
    CHECK(load_policy_for(file, "../policy").users.size() == 1);
    CHECK(load_policy_for(file, "%devs").users.size() == 1);

    SUBCASE("whatever another's file holds")
    {
        directory.write("users.d/carol.yaml", "[");
        REQUIRE(::chmod((directory / "users.d/carol.yaml").c_str(), 0666) == 0);
        CHECK(load_policy_for(file, "bob").users.size() == 2);
        CHECK_THROWS_AS(static_cast<void>(load_policy_for(file, "carol")), PolicyError);
        CHECK_THROWS_AS(static_cast<void>(load_policy(file)), PolicyError);
    }
    SUBCASE("but not with a file that others can write")
    {
        REQUIRE(::chmod((directory / "users.d/bob.yaml").c_str(), 0666) == 0);
        CHECK_THROWS_WITH_AS(static_cast<void>(load_policy_for(file, "bob")), doctest::Contains("writable by others than root"),
                             PolicyError);
    }
    SUBCASE("nor through a link to one")
    {
        directory.write("elsewhere.yaml", "roots: [/srv/b]\n");
        REQUIRE(::chmod((directory / "elsewhere.yaml").c_str(), 0666) == 0);
        REQUIRE(::unlink((directory / "users.d/bob.yaml").c_str()) == 0);
        REQUIRE(::symlink("../elsewhere.yaml", (directory / "users.d/bob.yaml").c_str()) == 0);
        CHECK_THROWS_AS(static_cast<void>(load_policy_for(file, "bob")), PolicyError);
    }
    SUBCASE("nobody need be in the policy itself, which only the whole can tell")
    {
        directory.write("policy.yaml", per_user);
        CHECK(load_policy_for(file, "bob").users.size() == 1);
        CHECK(load_policy_for(file, "eve").users.empty());
        REQUIRE(::unlink((directory / "users.d/bob.yaml").c_str()) == 0);
        REQUIRE(::unlink((directory / "users.d/carol.yaml").c_str()) == 0);
        CHECK_THROWS_WITH_AS(static_cast<void>(load_policy(file)), doctest::Contains("nobody is authorised"), PolicyError);
    }
    SUBCASE("whether users share an account is to be said, since there are more than a start sees")
    {
        directory.write("policy.yaml", head + alice);
        for (const char *user : {"alice", "bob", "eve"})
            CHECK_THROWS_WITH_AS(static_cast<void>(load_policy_for(file, user)), doctest::Contains("agent.accounts: missing"), PolicyError);
    }
    SUBCASE("nor does anybody get the account of a user that was not read")
    {
        directory.write("policy.yaml", per_user + "users: {alice: {roots: [/srv/a], run_as: pi-agent-bob}}\n");
        CHECK_THROWS_WITH_AS(static_cast<void>(load_policy_for(file, "alice")),
                             doctest::Contains("users.alice.run_as: 'pi-agent-bob' is the account of users.bob in users.d"), PolicyError);
        CHECK_THROWS_WITH_AS(static_cast<void>(load_policy_for(file, "bob")), doctest::Contains("has the account 'pi-agent-bob'"),
                             PolicyError);
        CHECK_THROWS_AS(static_cast<void>(load_policy(file)), PolicyError);
    }
    SUBCASE("whoever it stops is told whom to ask, and the list is for those who can mend it")
    {
        const auto told = [&](const char *user) {
            try {
                static_cast<void>(load_policy_to_start(file, user));
            } catch (const Failure &failure) {
                CHECK(failure.status() == ExitStatus::configuration);
                CHECK(failure.kind() == (std::filesystem::exists(file) ? FailureKind::invalid_policy : FailureKind::no_policy));
                return std::string(failure.what());
            }
            return std::string("nothing");
        };
        CHECK(told("bob") == "nothing");
        std::filesystem::rename(file, file + ".away");
        CHECK(doctest::String(told("bob").c_str()) == doctest::Contains("ask the administrator to write one"));
        try {
            static_cast<void>(load_policy(file));
            FAIL("a policy that is not there was read");
        } catch (const PolicyError &error) {
            CHECK(error.kind() == FailureKind::no_policy);
        }
        std::filesystem::rename(file + ".away", file);
        directory.write("users.d/bob.yaml", "rots: [/srv/b]\nnonsense: 1\n");
        CHECK(told("bob") == "the administrator's policy has 3 errors, so you cannot start pi. Ask them to run: pi-agentctl check");
        CHECK(told("alice") == "nothing");
        directory.write("policy.yaml", per_user + "nonsense: 1\n" + alice);
        CHECK(told("alice") == "the administrator's policy has 1 error, so nobody can start pi. Ask them to run: pi-agentctl check");
        CHECK(told("bob") == "the administrator's policy has 4 errors, so nobody can start pi. Ask them to run: pi-agentctl check");
        std::string many = per_user + alice;
        for (int count = 0; count < 200; ++count)
            many += "nonsense" + std::to_string(count) + ": 1\n";
        directory.write("policy.yaml", many);
        CHECK(told("alice") ==
              "the administrator's policy has more than 100 errors, so nobody can start pi. Ask them to run: pi-agentctl check");
        REQUIRE(::chmod(file.c_str(), 0666) == 0); // one line, and no mistake of the text
        CHECK(doctest::String(told("alice").c_str()) ==
              doctest::Contains("policy.yaml cannot be trusted: it is writable by others than root"));
    }
    SUBCASE("and a name that no user has is told to who reads all")
    {
        directory.write("users.d/%devs.yaml", "roots: [/srv/c]\n");
        CHECK_THROWS_WITH_AS(static_cast<void>(load_policy(file)), doctest::Contains("%devs.yaml: is not named after a user"), PolicyError);
        CHECK(load_policy_for(file, "bob").users.size() == 2);
    }
}

TEST_CASE("whatever is changed in a policy changes its stamp" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory("/run");
    const auto file = directory.write("policy.yaml", head);
    directory.make("policy.d");
    directory.write("policy.d/10-a.yaml", alice);
    std::string before = policy_stamp(file, "alice");
    CHECK(policy_stamp(file, "alice") == before);
    const auto check_changed = [&](const char *what) {
        const std::string now = policy_stamp(file, "alice");
        CHECK_MESSAGE(now != before, what);
        before = now;
    };
    directory.write("policy.yaml", head + "\n");
    check_changed("the file");
    directory.write("policy.d/10-a.yaml", alice + "\n");
    check_changed("a further file");
    directory.write("policy.d/20-b.yaml", "");
    check_changed("one more");
    REQUIRE(::unlink((directory / "policy.d/10-a.yaml").c_str()) == 0);
    check_changed("one less");
    directory.make("users.d");
    directory.write("users.d/alice.yaml", alice);
    check_changed("the user's own");
    directory.write("users.d/bob.yaml", alice);
    CHECK(policy_stamp(file, "alice") == before); // another's, which no start of alice's reads
    REQUIRE(::unlink((directory / "policy.yaml").c_str()) == 0);
    check_changed("none at all");
}

} // namespace policy_sources_test
