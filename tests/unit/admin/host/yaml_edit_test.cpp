// Changing one value in a YAML file, and nothing else: admin/host/yaml_edit.hpp
#include "admin/host/yaml_edit.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace pi_agent;
using namespace pi_agent::test;

namespace yaml_edit_test {

namespace {

std::string set(const std::string &text, const KeyPath &path, const std::string &value)
{
    return set_in_yaml("p.yaml", text, path, value);
}

std::string without(const std::string &text, const KeyPath &path)
{
    return remove_from_yaml("p.yaml", text, path);
}

std::string refusal_of(const std::string &text, const KeyPath &path, const std::string &value)
{
    return failure_of([&] { return set(text, path, value); }).text;
}

constexpr const char *policy = "# Ours.\n"
                               "version: 1\n"
                               "\n"
                               "agent: {accounts: per-user} # each their own\n"
                               "users:\n"
                               "  # The first.\n"
                               "  alice:\n"
                               "    roots: [~/projects]   # in here\n"
                               "    env:\n"
                               "      EDITOR: nano\n"
                               "  'CORP\\bob':\n"
                               "    roots:\n"
                               "    - /srv/a\n"
                               "    - /srv/b # too\n"
                               "\n"
                               "# At the end.\n"
                               "network: full\n";

std::string changed(std::string text, const std::string &from, const std::string &to)
{
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("a value is exchanged where it stands, and its comment stays")
{
    CHECK(set(policy, {"network"}, "loopback") == changed(policy, "network: full", "network: loopback"));
    CHECK(set(policy, {"agent", "accounts"}, "shared") == changed(policy, "per-user", "shared"));
    CHECK(set(policy, {"users", "alice", "roots"}, "[~/a, ~/b]") == changed(policy, "[~/projects]", "[~/a, ~/b]"));
    CHECK(set(policy, {"users", "alice", "env", "EDITOR"}, "'vi'") == changed(policy, "nano", "'vi'"));
    CHECK(set("a: 'it''s' # so\n", {"a"}, "b") == "a: b # so\n");
    CHECK(set("a: \"x # y\"\n", {"a"}, "b") == "a: b\n");
    CHECK(set("a: [1,\n  2]\nb: 3\n", {"a"}, "4") == "a: 4\nb: 3\n");
    CHECK(set("{a: 1, b: [2, '}']}", {"b"}, "{c: 3}") == "{a: 1, b: {c: 3}}");
    CHECK(set("\"a\": x\n", {"a"}, "y") == "\"a\": y\n");
    CHECK(set("\xef\xbb\xbf"
              "a: x\n",
              {"a"}, "y") == "\xef\xbb\xbf"
                             "a: y\n");
    CHECK(set("\xc3\xa4: x\nb: \xc3\xa4\xc3\xb6 # \xc3\xbc\n", {"b"}, "y") == "\xc3\xa4: x\nb: y # \xc3\xbc\n");
}

TEST_CASE("a block becomes one line, and what follows stays")
{
    CHECK(set("users:\n  a:\n    roots:\n    - /x\n    - /y\n  b: 1\n", {"users", "a", "roots"}, "[/z]") ==
          "users:\n  a:\n    roots: [/z]\n  b: 1\n");
    CHECK(set("a:\n  b: 1\n\n# for c\nc: 2\n", {"a"}, "{b: 3}") == "a: {b: 3}\n\n# for c\nc: 2\n");
    CHECK(set("a: |\n  text\n  more\nb: 1\n", {"a"}, "x") == "a: x\nb: 1\n");
    CHECK(set("a:\n- 1\n- 2", {"a"}, "[3]") == "a: [3]\n");
}

TEST_CASE("a key that is missing is added to its mapping, at the end, and mappings on the way are made")
{
    CHECK(set(policy, {"limits", "memory"}, "8G") == std::string(policy) + "limits: {memory: 8G}\n");
    CHECK(set(policy, {"agent", "user"}, "ai") == changed(policy, "{accounts: per-user}", "{accounts: per-user, user: ai}"));
    CHECK(set(policy, {"users", "alice", "env", "PAGER"}, "less") ==
          changed(policy, "EDITOR: nano\n", "EDITOR: nano\n      PAGER: less\n"));
    CHECK(set(policy, {"users", "CORP\\bob", "env", "A"}, "b") == changed(policy, "/srv/b # too\n", "/srv/b # too\n    env: {A: b}\n"));
    CHECK(set(policy, {"users", "CORP\\carl"}, "{roots: [/x]}") ==
          changed(policy, "/srv/b # too\n", "/srv/b # too\n  'CORP\\carl': {roots: [/x]}\n"));
    CHECK(set("", {"a", "b"}, "1") == "a: {b: 1}\n");
    CHECK(set("# only a comment", {"a"}, "1") == "# only a comment\na: 1\n");
    CHECK(set("a: {}\n", {"a", "b"}, "1") == "a: {b: 1}\n");
    CHECK(set("a: # nothing yet\nb: 1\n", {"a", "c"}, "2") == "a: {c: 2} # nothing yet\nb: 1\n");
    CHECK(set("a: { b: 1, }\n", {"a", "c"}, "2") == "a: { b: 1, c: 2 }\n");
    CHECK(set("a: {b: 1, # one\n    c: 2}\n", {"a", "d"}, "3") == "a: {d: 3, b: 1, # one\n    c: 2}\n");
    CHECK(set("a: 1", {"b"}, "2") == "a: 1\nb: 2\n");
}

TEST_CASE("an entry goes with its lines, and comments around it stay")
{
    CHECK(without(policy, {"users", "alice"}) ==
          changed(policy, "  alice:\n    roots: [~/projects]   # in here\n    env:\n      EDITOR: nano\n", ""));
    CHECK(without(policy, {"users", "CORP\\bob"}) == changed(policy, "  'CORP\\bob':\n    roots:\n    - /srv/a\n    - /srv/b # too\n", ""));
    CHECK(without(policy, {"network"}) == changed(policy, "network: full\n", ""));
    CHECK(without("{a: 1, b: 2, c: 3}\n", {"a"}) == "{b: 2, c: 3}\n");
    CHECK(without("{a: 1, b: 2, c: 3}\n", {"b"}) == "{a: 1, c: 3}\n");
    CHECK(without("{a: 1, b: 2}\n", {"b"}) == "{a: 1}\n");
    CHECK(without("a: {b: 2}\n", {"a", "b"}) == "a: {}\n");
    CHECK(without(policy, {"users", "nobody"}) == policy);
}

TEST_CASE("what cannot be changed without a loss is refused, with its place")
{
    CHECK(has(refusal_of("a:\n  # why\n  b: 1\n", {"a"}, "2"), "p.yaml:3:3: the value has a comment"));
    CHECK(has(refusal_of("a: [1, # why\n 2]\n", {"a"}, "2"), "p.yaml:1:4: the value has a comment"));
    CHECK(has(refusal_of("a: full\n", {"a", "b"}, "2"), "p.yaml:1:4: is the text 'full', and holds no keys"));
    CHECK(has(refusal_of("a: x\n  y\n", {"a"}, "2"), "cannot be changed here"));
    CHECK(has(refusal_of("? a\n: x\n", {"a"}, "2"), "cannot be changed here"));
    CHECK(failure_of([] { return set("a: [", {"a"}, "1"); }).status == 78);
    CHECK(failure_of([] { return set("{a: b}", {"a"}, "c, d: e"); }).status == 78); // it would be two entries
}

namespace {

void collect_paths(const YamlNode &node, const KeyPath &above, std::vector<KeyPath> &paths)
{
    for (const auto &entry : node.entries) {
        KeyPath path = above;
        path.push_back(entry.key);
        paths.push_back(path);
        collect_paths(entry.value, path, paths);
    }
}

} // namespace

TEST_CASE("in the example policies each value can be changed and each entry taken out, or a comment is why not")
{
    std::size_t tried = 0;
    for (const auto &file : std::filesystem::directory_iterator(PI_AGENT_EXAMPLES)) {
        std::ifstream stream(file.path());
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        Problems problems;
        const auto root = parse_yaml("p.yaml", text, problems);
        REQUIRE(root);
        std::vector<KeyPath> paths;
        collect_paths(*root, {}, paths);
        for (const auto &path : paths) {
            CAPTURE(file.path().string());
            CAPTURE(path.back());
            ++tried;
            const auto refused = refusal_of(text, path, "x");
            CHECK_MESSAGE((refused.empty() || has(refused, "has a comment")), refused);
            CHECK(without(text, path).size() < text.size());
        }
    }
    CHECK(tried > 50);
}

TEST_CASE("a word is quoted where a reader could take it for anything else")
{
    for (const std::string plain : {"full", "~/projects", "/srv/a-b_c.d", "Alice.Smith@example.org", "_x"})
        CHECK(yaml_word(plain) == plain);
    for (const std::string odd : {"", "true", "null", "no", "8", "1.5", "-a", "%devs", "a b", "a: b", "a#b", "[a]", "~", "CORP\\bob", "@a"})
        CHECK(yaml_word(odd) == "'" + odd + "'");
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

} // namespace yaml_edit_test
