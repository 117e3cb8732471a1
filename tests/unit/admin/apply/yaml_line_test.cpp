// YAML as pi-agentctl writes it: admin/apply/apply.hpp
#include "admin/apply/apply.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace pi_agent;
using namespace pi_agent::test;

namespace yaml_line_test {

namespace {

// What a file has after this value was put there.
std::string put(const std::string &text, const KeyPath &path, const std::string &value)
{
    auto root = parse_or_throw("p.yaml", text);
    put_node(root, path, parse_or_throw("the value", value));
    return yaml_lines(root);
}

} // namespace

TEST_CASE("a value is put in its place, and mappings on the way are made")
{
    CHECK(put("", {"network"}, "none") == "network: none\n");
    CHECK(put("network: none\n", {"network"}, "loopback") == "network: loopback\n");
    CHECK(put("network: none\n", {"limits", "memory"}, "8G") == "network: none\nlimits: {memory: 8G}\n");
    CHECK(put("limits: {memory: 8G}\n", {"limits", "sessions"}, "3") == "limits: {memory: 8G, sessions: 3}\n");
    CHECK(put("limits: {memory: 8G}\nnetwork: none\n", {"limits", "memory"}, "1G") == "limits: {memory: 1G}\nnetwork: none\n");
    CHECK(put("roots: [~/a]\n", {"env", "A"}, "'1'") == "roots: [~/a]\nenv: {A: '1'}\n");
    CHECK(put("", {"roots"}, "[~/a, {path: /b, network: none}]") == "roots: [~/a, {path: /b, network: none}]\n");
    const auto refused = failure_of([] { return put("network: full\n", {"network", "hosts"}, "[]"); });
    CHECK(refused.status == 78);
    CHECK(has(refused.text, "p.yaml:1:10: is the text 'full', and holds no keys"));
}

TEST_CASE("the lines of a policy mean what the policy means")
{
    std::size_t tried = 0;
    for (const auto &file : std::filesystem::directory_iterator(PI_AGENT_EXAMPLES)) {
        std::ifstream stream(file.path());
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        const auto root = parse_or_throw("p.yaml", text);
        const auto again = parse_or_throw("p.yaml", yaml_lines(root));
        CHECK_MESSAGE(yaml_line(again) == yaml_line(root), file.path().string());
        tried += root.entries.size();
    }
    CHECK(tried > 40);
    for (const std::string odd : {"a, b", "a]", "a}b", "a?b", "'1'", "null", "1.5", "http://a:80/b", "[a, 'b c', {c: 'd, e'}]"}) {
        const auto value = parse_or_throw("the value", odd);
        const auto again = parse_or_throw("p.yaml", put("", {"a", "b"}, odd));
        const auto *found = find_node(again, {"a", "b"});
        REQUIRE(found != nullptr);
        CHECK_MESSAGE((found->kind == value.kind && found->text == value.text && yaml_line(*found) == yaml_line(value)), odd);
    }
}

TEST_CASE("a word is quoted where a reader could take it for anything else")
{
    for (const std::string plain : {"full", "~/projects", "/srv/a-b_c.d", "Alice.Smith@example.org", "_x"})
        CHECK(yaml_word(plain) == plain);
    for (const std::string odd : {"", "true", "null", "no", "8", "1.5", "-a", "%devs", "a b", "a: b", "a#b", "[a]", "~", "CORP\\bob", "@a"})
        CHECK(yaml_word(odd) == "'" + odd + "'");
    for (const std::string_view odd :
         split("y YES oFF True FALSE Null nULL 0x1f 0o17 1_000 1e3 12:30 .inf -.Inf .NaN 2026-11-29 = <<", ' '))
        CHECK(yaml_word(std::string(odd)) == "'" + std::string(odd) + "'");
    CHECK(yaml_word("it's") == "'it''s'");
    CHECK(failure_of([] { return yaml_word("a\nb"); }).status == 64);
    CHECK(failure_of([] { return yaml_word("\xe2\x80\xae"); }).status == 64);
}

TEST_CASE("a value is shown in one line that means the same")
{
    Problems problems;
    const std::string text = "{a: [1, '2', true], b: {c: 'it''s'}, d: \"x\\ny\", e: }";
    const auto node = parse_yaml("p.yaml", text, problems);
    REQUIRE(node);
    CHECK(yaml_line(*node) == "{a: [1, '2', true], b: {c: 'it''s'}, d: \"x\\ny\", e: null}");
}

} // namespace yaml_line_test
