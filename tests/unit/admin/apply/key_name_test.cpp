// What somebody types as a key of the policy: admin/apply/apply.hpp
#include "admin/apply/apply.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace key_name_test {

namespace {

std::string path_of(const std::string &text)
{
    const auto name = parse_key_name(text);
    return fmt::format("{} <{}>", fmt::join(name.path, "|"), name.key->path);
}

std::string refusal_of(const std::string &text)
{
    const Caught caught = failure_of([&] { return parse_key_name(text).path; });
    CHECK(caught.status == 64);
    return caught.text;
}

} // namespace

TEST_CASE("a key is found by its name between dots, and names may have dots themselves")
{
    CHECK(path_of("network") == "network <network>");
    CHECK(path_of("limits.memory") == "limits|memory <limits.memory>");
    CHECK(path_of("users.alice.roots") == "users|alice|roots <users.*.roots>");
    CHECK(path_of("users.Alice.Smith@example.org.roots") == "users|Alice.Smith@example.org|roots <users.*.roots>");
    CHECK(path_of("users.Alice.Smith.env.EDITOR") == "users|Alice.Smith|env|EDITOR <users.*.env.*>");
    CHECK(path_of("users.alice.limits.memory") == "users|alice|limits|memory <users.*.limits.memory>");
    CHECK(path_of("users.alice.settings.a.b") == "users|alice|settings|a|b <users.*.settings>");
    CHECK(path_of("users.%devs") == "users|%devs <users.*>");
    CHECK(path_of("settings.a.b") == "settings|a|b <settings>");
    CHECK(path_of("config.classes.extensions/x.y") == "config|classes|extensions/x.y <config.classes.*>");
}

TEST_CASE("what is no key is refused, with the key that was meant")
{
    CHECK(has(refusal_of("limits.memroy"), "did you mean 'memory'?"));
    CHECK(has(refusal_of("limit"), "did you mean 'limits'?"));
    for (const std::string text : {"", ".", "limits.", ".limits", "network.full", "nonsense.x"})
        CHECK_MESSAGE(has(refusal_of(text), "is not a key of a policy"), text);
    CHECK(has(parse_key_name("users.alice.rots").doubt, "did you mean 'roots'?")); // or somebody is called so
    CHECK(parse_key_name("users.alice.roots").doubt.empty());
    CHECK(has(parse_key_name("users.alice.roots.0.network").doubt, "a list is set as a whole"));
    CHECK(has(parse_key_name("users.alice.roots.0.paths").doubt, "a list is set as a whole"));
}

TEST_CASE("a text is taken as it is, and everything else as YAML in one line")
{
    const auto value = [](const char *key, const std::string &text) { return value_for(parse_key_name(key), text); };
    CHECK(value("env.X", "1") == "'1'");
    CHECK(value("env.X", "a: b") == "'a: b'");
    CHECK(value("env.X", "true") == "'true'");
    CHECK(value("agent.binary", "/opt/pi") == "/opt/pi");
    CHECK(value("limits.tasks", "100") == "100");
    CHECK(value("users.alice.roots", "[~/a, '/b c']") == "[~/a, '/b c']");
    CHECK(value("wrapper.enable", "false") == "false");
    CHECK(failure_of([&] { return value("users.alice.roots", "[~/a"); }).status == 78);
    CHECK(failure_of([&] { return value("env.X", "a\nb"); }).status == 64);
    CHECK(failure_of([&] { return value("limits.tasks", ""); }).status == 64);
    CHECK(value("limits", "{memory: 8G, cpu: 1}") == "{memory: 8G, cpu: 1}");
    CHECK(has(failure_of([&] { return value("limits.memory", "8G, cpu: 1"); }).text, "YAML reads the value '8G, cpu: 1' as a key"));
}

} // namespace key_name_test
