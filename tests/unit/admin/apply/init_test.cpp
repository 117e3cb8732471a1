// A first policy: admin/apply/apply.hpp; applied policies as files: admin/host/host_things.hpp
#include "admin/apply/apply.hpp"

#include "admin/host/host_things.hpp"
#include "common/base/error.hpp"
#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace init_test {

namespace {

Account account(const std::string &name, unsigned uid, const std::string &home)
{
    return {name, Uid(uid), Gid(uid), home, {}};
}

} // namespace

TEST_CASE("the text is a policy that gives each user its roots, each agent an account of its own")
{
    const auto policy = parse(init_text({{"alice", {"~/projects", "/srv/a=b@c"}}, {"bob", {}}, {"carol", {"~/src"}}}));
    REQUIRE(policy.users.size() == 2);
    CHECK(policy.users[0].name == "alice");
    CHECK(policy.users[0].roots[0].text == "~/projects");
    CHECK(policy.users[0].roots[1].text == "/srv/a=b@c");
    CHECK(policy.users[1].name == "carol");
    CHECK(policy.agent.accounts == Accounts::per_user);
}

TEST_CASE("a user whose agent's account could not be made gets another name for it")
{
    const auto policy = parse(init_text({{"john.doe", {"~/src"}}, {"alice", {"~/src"}}}));
    CHECK(policy.users[0].run_as == "pi-agent-john_doe");
    CHECK_FALSE(policy.users[1].run_as.has_value());
}

TEST_CASE("two users whose agents would get one name keep accounts of their own")
{
    const std::string longest(22, 'd'); // with one letter more, the account's name has one too many
    for (const auto &[one, other] : {std::pair<std::string, std::string>("jane.doe", "jane_doe"), {longest + "a", longest + "b"}}) {
        const auto policy = parse(init_text({{one, {"~/src"}}, {other, {"~/src"}}}));
        CHECK_FALSE(policy.users[0].run_as.has_value());
        CHECK_FALSE(policy.users[1].run_as.has_value());
    }
}

TEST_CASE("a name that YAML would take for something else is a name")
{
    for (const std::string name : {"null", "1e5", "CORP\\dana", "m\xc3\xbcller", "o'brien", "Alice Smith"})
        CHECK(parse(init_text({{name, {"~/src"}}})).users[0].name == name);
}

TEST_CASE("users without a directory are named in a comment, and a policy for nobody is none")
{
    CHECK(init_text({{"alice", {"~/src"}}, {"bob", {}}}).find("  # bob:\n  #   roots: [~/projects]\n") != std::string::npos);
    CHECK_THROWS_AS(static_cast<void>(init_text({{"bob", {}}})), Failure);
    CHECK_THROWS_AS(static_cast<void>(init_text({})), Failure);
}

TEST_CASE("a directory whose name holds a line break is refused")
{
    CHECK_THROWS_AS(static_cast<void>(init_text({{"alice", {"/srv/x\nusers: {}"}}})), Failure);
}

TEST_CASE("answers become keys of the policy, and what was not asked stays a comment")
{
    const std::vector<Candidate> alice = {{"alice", {"~/src"}}};
    const auto unasked = parse(init_text(alice));
    CHECK(unasked.network.mode == NetworkMode::hosts); // a new host is not open unless somebody says so
    CHECK(rule_for(unasked.network.hosts, HostRule{"api.anthropic.com"}) != nullptr);
    CHECK(rule_for(unasked.network.hosts, HostRule{"github.com"}) == nullptr);
    CHECK((unasked.env_files.empty() && unasked.providers.empty()));
    CHECK(parse(init_text(alice, {"full", {}})).network.mode == NetworkMode::full);
    CHECK(parse(init_text(alice, {"loopback", {}})).network.mode == NetworkMode::loopback);
    CHECK(parse(init_text(alice, {"none", {}})).network.mode == NetworkMode::none);
    const auto listed = parse(init_text(alice, {"10.20.0.0/16, ::1/128 127.0.0.0/8", "/etc/pi-agent/keys.env"}));
    CHECK(listed.network.mode == NetworkMode::listed);
    REQUIRE(listed.env_files.size() == 1);
    CHECK(listed.env_files[0].path == "/etc/pi-agent/keys.env");
}

TEST_CASE("the proxy of a host is taken from its usual forms, and its login is in no policy")
{
    const auto plain = proxy_of_text("proxy.example:3128", "x");
    REQUIRE(plain);
    CHECK((plain->url == "http://proxy.example:3128" && plain->login.empty()));
    const auto with_login = proxy_of_text("http://CORP%5calice:p%40ss%@proxy.example:3128/", "x");
    REQUIRE(with_login);
    CHECK((with_login->url == plain->url && with_login->login == "CORP\\alice:p@ss%"));
    for (const char *other : {"https://proxy.example:3128", "socks5h://proxy.example:1080", "http://proxy.example", "DIRECT", ""})
        CHECK_MESSAGE(!proxy_of_text(other, "x"), std::string(other));
    PolicyAnswers answers{{}, {}};
    answers.proxy = with_login;
    const auto text = init_text({{"alice", {"~/src"}}}, answers);
    const auto network = parse(text).network;
    REQUIRE((network.via && !network.hosts.empty()));
    CHECK((network.via->host == "proxy.example" && network.via_login_file.path == login_file_of_proxy()));
    CHECK(text.find("p@ss") == std::string::npos);
    CHECK((names_hosts({}) && names_hosts("github.com") && !names_hosts("none") && !names_hosts("10.0.0.0/8")));
}

TEST_CASE("a host's proxy is found in variables of either case")
{
    const auto found = find_host_proxy([](const std::string &name) {
        return name == "HTTPS_PROXY" ? std::optional<std::string>("http://proxy.example:3128") : std::nullopt;
    });
    REQUIRE(found);
    CHECK((found->url == "http://proxy.example:3128" && found->where == "HTTPS_PROXY in root's environment"));
}

TEST_CASE("names of hosts are an answer, and the key of a provider stays outside where there are hosts")
{
    const std::vector<Candidate> alice = {{"alice", {"~/src"}}};
    const auto named = parse(init_text(alice, {"github.com, *.example.org localhost:5432", {}})).network;
    REQUIRE((named.mode == NetworkMode::hosts && named.hosts.size() == 3));
    CHECK(to_string(named.hosts[1]) == "*.example.org");
    CHECK(parse(init_text(alice, {"abc.de", {}})).network.hosts.size() == 1); // whose letters are digits, too
    CHECK(parse(init_text(alice, {"10.20.0.5:443", {}})).network.mode == NetworkMode::hosts);
    const auto outside = parse(init_text(alice, {{}, {}, "anthropic"}));
    CHECK((outside.network.mode == NetworkMode::hosts && outside.network.hosts.empty()));
    REQUIRE(outside.providers.size() == 1);
    CHECK(outside.providers[0].key_file.path == "/etc/pi-agent/anthropic.key");
    const auto found = parse(init_text(alice, {"hosts", "/etc/pi-agent/keys.env", {}, {"api.openai.com"}}));
    REQUIRE(found.network.hosts.size() == 1);
    CHECK((found.network.hosts[0].host == "api.openai.com" && found.env_files.size() == 1));
}

TEST_CASE("a key stays outside where the network has a gate, and the provider a host of its own")
{
    CHECK(provider_outside("anthropic", {}) == "anthropic");
    CHECK(provider_outside("ANTHROPIC_API_KEY", "hosts") == "anthropic");
    CHECK(provider_outside("google", "github.com, localhost:5432") == "google");
    for (const auto *network : {"full", "loopback", "none", "10.0.0.0/8, ::1/128"})
        CHECK_FALSE_MESSAGE(provider_outside("anthropic", network).has_value(), network);
    CHECK_FALSE(provider_outside("mistral", {}).has_value());
    CHECK_FALSE(provider_outside("azure-openai-responses", {}).has_value());
    CHECK(file_of_key("anthropic", {}) == "/etc/pi-agent/anthropic.key");
    CHECK(file_of_key("anthropic", "full") == "/etc/pi-agent/keys.env");
    CHECK(hosts_of_keys("/no/such/file", {}).empty());
}

TEST_CASE("a network that is none of the words, no host and no address is refused, whatever it would mean in YAML")
{
    for (const auto *answer :
         {"fll", "10.20.0.0/99", "[none]", "none\nusers: {}", "\"", "*", "full none", "https://a.example/", "a.example:0"})
        CHECK_THROWS_AS(static_cast<void>(init_text({{"alice", {"~/src"}}}, {answer, {}})), Failure);
    CHECK_THROWS_WITH_AS(static_cast<void>(init_text({{"alice", {"~/src"}}}, {"https://a.example/", {}})), doctest::Contains("is a URL"),
                         Failure);
}

TEST_CASE("a file of keys is named as text, whatever its name would mean in YAML")
{
    const auto policy = parse(init_text({{"alice", {"~/src"}}}, {{}, "/etc/pi-agent/a, b: 'c'.env"}));
    REQUIRE(policy.env_files.size() == 1);
    CHECK(policy.env_files[0].path == "/etc/pi-agent/a, b: 'c'.env");
    CHECK_THROWS_AS(static_cast<void>(init_text({{"alice", {"~/src"}}}, {{}, "/etc/x\n.env"})), Failure);
}

TEST_CASE("an answer is taken apart at commas and spaces")
{
    CHECK(words_of_answer(" alice,bob  carol , ") == std::vector<std::string>{"alice", "bob", "carol"});
    CHECK(words_of_answer(" , ").empty());
}

TEST_CASE("a provider, or the variable itself, says where its key belongs")
{
    CHECK(variable_of_key("anthropic") == "ANTHROPIC_API_KEY");
    CHECK(variable_of_key("google") == "GEMINI_API_KEY");
    CHECK(variable_of_key("zai-coding-cn") == "ZAI_CODING_CN_API_KEY");
    CHECK(variable_of_key("OPENAI_API_KEY") == "OPENAI_API_KEY");
    for (const auto *name : {"", "anthropi", "PATH", "LD_PRELOAD", "anthropic openai", "FOO_API_KEY"})
        CHECK_THROWS_AS(static_cast<void>(variable_of_key(name)), Failure);
}

TEST_CASE("a key that would not be one value of one line is refused, and the message does not have it")
{
    CHECK_NOTHROW(require_plain_key("sk-ant-api03_A.b/c+d=e:f#g$h"));
    for (const auto *value : {"", "two words", "quo\"te", "quo'te", "back\\slash", "line\nFEED=1", "tab\there", "\x7f", "h\xc3\xa9"}) {
        try {
            require_plain_key(value);
            FAIL("accepted");
        } catch (const Failure &failure) {
            CHECK((std::string(value).empty() || std::string(failure.what()).find(value) == std::string::npos));
        }
    }
}

TEST_CASE("people are accounts with an ordinary number, a login shell and a home")
{
    CHECK(is_persons(account("alice", 1000, "/home/alice"), "/bin/bash", 1000, 60000));
    CHECK_FALSE(is_persons(account("daemon", 999, "/home/daemon"), "/bin/bash", 1000, 60000));
    CHECK_FALSE(is_persons(account("nobody", 65534, "/nonexistent"), "/usr/sbin/nologin", 1000, 60000));
    CHECK_FALSE(is_persons(account("alice", 1000, "/home/alice"), "/usr/sbin/nologin", 1000, 60000));
    CHECK_FALSE(is_persons(account("alice", 1000, "/home/alice"), "/bin/false", 1000, 60000));
    CHECK_FALSE(is_persons(account("alice", 1000, "/"), "/bin/bash", 1000, 60000));
    CHECK(is_persons(account("Alice Smith", 1000, "/home/alice"), "/bin/bash", 1000, 60000));
    CHECK_FALSE(is_persons(account("alice,smith", 1000, "/home/alice"), "/bin/bash", 1000, 60000));
}

TEST_CASE("policies are the same when their files are, whatever their order")
{
    CHECK(are_same({{"a", "1"}, {"b", "2"}}, {{"b", "2"}, {"a", "1"}}));
    CHECK_FALSE(are_same({{"a", "1"}}, {{"a", "1"}, {"b", ""}}));
    CHECK_FALSE(are_same({{"a", "1"}}, {{"a", "2"}}));
}

TEST_CASE("the difference of policies names the files that change, come and go")
{
    const auto text = difference_of({{"a", "1\n"}, {"b", "2\n"}, {"same", "x\n"}}, {{"a", "one\n"}, {"c", "3\n"}, {"same", "x\n"}});
    CHECK(text.find("    --- a\n    +++ a\n") != std::string::npos);
    CHECK(text.find("    --- b\n    +++ /dev/null\n") != std::string::npos);
    CHECK(text.find("    --- /dev/null\n    +++ c\n") != std::string::npos);
    CHECK(text.find("same") == std::string::npos);
}

} // namespace init_test
