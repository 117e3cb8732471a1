// How the host's, the agent's and the managed version of a document become one: runner/as_agent/writer.hpp
#include "runner/as_agent/writer.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using nlohmann::json;

namespace documents_test {

namespace {

// One document through any number of syncs, with what the writer remembers between them.
struct Document {
    FileClass file_class = FileClass::seed;
    json host = json::object();
    std::optional<json> inside;
    json managed = json::object();
    std::string name = "settings.json";

    json sync()
    {
        if (!inside) base_host = base_chosen = base_written = std::nullopt;
        const DocumentVersions versions{host, inside, base_host, base_chosen, base_written};
        base_host = file_class == FileClass::mirror || file_class == FileClass::seed ? host : json::object();
        base_chosen = merge_document(name, file_class, versions);
        inside = base_written = merge_managed(*base_chosen, managed);
        return *inside;
    }

    std::optional<json> base_host, base_chosen, base_written;
};

// Two syncs: before the second one host and inside become what is said.
struct Row {
    std::string what;
    std::string first_host, host, inside, merged;
};

} // namespace

TEST_CASE("key by key the host's change wins, and what was changed only inside survives")
{
    const std::vector<Row> rows = {
        {"nothing changed", R"({"a":1})", R"({"a":1})", R"({"a":1})", R"({"a":1})"},
        {"changed inside", R"({"a":1})", R"({"a":1})", R"({"a":2})", R"({"a":2})"},
        {"added inside", R"({"a":1})", R"({"a":1})", R"({"a":1,"b":2})", R"({"a":1,"b":2})"},
        {"deleted inside", R"({"a":1,"b":2})", R"({"a":1,"b":2})", R"({"a":1})", R"({"a":1})"},
        {"changed on the host", R"({"a":1})", R"({"a":3})", R"({"a":1})", R"({"a":3})"},
        {"added on the host", R"({"a":1})", R"({"a":1,"b":2})", R"({"a":1})", R"({"a":1,"b":2})"},
        {"deleted on the host", R"({"a":1,"b":2})", R"({"a":1})", R"({"a":1,"b":2})", R"({"a":1})"},
        {"changed on both", R"({"a":1})", R"({"a":3})", R"({"a":2})", R"({"a":3})"},
        {"deleted on the host, changed inside", R"({"a":1})", "{}", R"({"a":2})", "{}"},
        {"changed on the host, deleted inside", R"({"a":1})", R"({"a":3})", "{}", R"({"a":3})"},
        {"added on both", "{}", R"({"a":3})", R"({"a":2})", R"({"a":3})"},
        {"different keys", R"({"a":1,"b":1})", R"({"a":2,"b":1})", R"({"a":1,"b":2})", R"({"a":2,"b":2})"},
        {"nested", R"({"o":{"a":1,"b":1}})", R"({"o":{"a":2,"b":1}})", R"({"o":{"a":1,"b":2,"c":3}})", R"({"o":{"a":2,"b":2,"c":3}})"},
        {"deleted inside, nested", R"({"o":{"p":{"a":1,"b":1}}})", R"({"o":{"p":{"a":1,"b":1}}})", R"({"o":{"p":{"a":1}}})",
         R"({"o":{"p":{"a":1}}})"},
        {"an object deleted inside", R"({"o":{"a":1}})", R"({"o":{"a":1}})", "{}", "{}"},
        {"an object deleted inside, changed on the host", R"({"o":{"a":1}})", R"({"o":{"a":2}})", "{}", R"({"o":{"a":2}})"},
        {"an object becomes a scalar inside", R"({"o":{"a":1}})", R"({"o":{"a":1}})", R"({"o":1})", R"({"o":1})"},
        {"an object becomes a scalar on the host", R"({"o":{"a":1}})", R"({"o":1})", R"({"o":{"a":2}})", R"({"o":1})"},
        {"arrays are replaced as a whole", R"({"l":[1,2]})", R"({"l":[1,2]})", R"({"l":[3]})", R"({"l":[3]})"},
        {"the host's array wins as a whole", R"({"l":[1,2]})", R"({"l":[1]})", R"({"l":[1,2,3]})", R"({"l":[1]})"},
        {"null is a value inside", R"({"a":1})", R"({"a":1})", R"({"a":null})", R"({"a":null})"},
        {"null is a value on the host", R"({"a":1})", R"({"a":null})", R"({"a":1})", R"({"a":null})"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        Document document;
        document.host = json::parse(row.first_host);
        CHECK(document.sync() == document.host);
        document.host = json::parse(row.host);
        document.inside = json::parse(row.inside);
        CHECK(document.sync() == json::parse(row.merged));
        for (int round = 0; round < 10; ++round) // and it stays so
            CHECK(document.sync() == json::parse(row.merged));
    }
}

TEST_CASE("before the first sync the host's keys win and the agent's others stay")
{
    Document document;
    document.host = {{"a", 1}, {"o", {{"x", 1}}}};
    document.inside = {{"a", 2}, {"b", 3}, {"o", {{"x", 2}, {"y", 4}}}};
    CHECK(document.sync() == json::parse(R"({"a":1,"b":3,"o":{"x":1,"y":4}})"));
}

TEST_CASE("where nothing is inside any more the host's comes again")
{
    Document document;
    document.host = {{"a", 1}};
    document.sync();
    document.inside = {{"a", 2}};
    document.sync();
    document.inside.reset();
    CHECK(document.sync() == document.host);
}

TEST_CASE("managed values lie over all, and leave what was under them when they go")
{
    struct Case {
        std::string what, host, managed, with, without;
    };
    const std::vector<Case> cases = {
        {"over a scalar", R"({"a":1,"b":1})", R"({"a":9})", R"({"a":9,"b":1})", R"({"a":1,"b":1})"},
        {"a key that nobody else has", R"({"b":1})", R"({"a":9})", R"({"a":9,"b":1})", R"({"b":1})"},
        {"in an object", R"({"o":{"a":1,"b":2}})", R"({"o":{"a":9,"c":9}})", R"({"o":{"a":9,"b":2,"c":9}})", R"({"o":{"a":1,"b":2}})"},
        {"an object over a scalar", R"({"a":1})", R"({"a":{"x":9}})", R"({"a":{"x":9}})", R"({"a":1})"},
        {"a scalar over an object", R"({"a":{"x":1}})", R"({"a":9})", R"({"a":9})", R"({"a":{"x":1}})"},
        {"an array over an array", R"({"a":[1,2]})", R"({"a":[9]})", R"({"a":[9]})", R"({"a":[1,2]})"},
        {"null", R"({"a":1})", R"({"a":null})", R"({"a":null})", R"({"a":1})"},
    };
    for (const auto file_class : {FileClass::seed, FileClass::mirror})
        for (const auto &row : cases) {
            CAPTURE(row.what);
            Document document;
            document.file_class = file_class;
            document.host = json::parse(row.host);
            document.managed = json::parse(row.managed);
            for (int round = 0; round < 3; ++round)
                CHECK(document.sync() == json::parse(row.with));
            document.managed = json::object();
            for (int round = 0; round < 3; ++round)
                CHECK(document.sync() == json::parse(row.without));
        }
}

TEST_CASE("a choice made inside survives under a managed value, and a change of a managed value does not")
{
    Document document;
    document.host = {{"model", "host"}, {"theme", "host"}};
    document.sync();
    document.inside = {{"model", "inside"}, {"theme", "host"}};
    document.sync();
    document.managed = {{"model", "managed"}};
    CHECK(document.sync()["model"] == "managed");
    (*document.inside)["model"] = "agent's try";
    CHECK(document.sync()["model"] == "managed");
    document.managed = {{"model", "other"}};
    CHECK(document.sync()["model"] == "other");
    CHECK(document.sync() == json{{"model", "other"}, {"theme", "host"}});
}

TEST_CASE("of a mirrored document nothing of the inside stays but the agent's own keys")
{
    Document document;
    document.file_class = FileClass::mirror;
    document.host = {{"a", 1}};
    document.inside = {{"a", 2}, {"b", 3}, {"trackingId", "t"}, {"deviceId", "d"}, {"lastChangelogVersion", "1.2.3"}};
    const json expected = {{"a", 1}, {"trackingId", "t"}, {"deviceId", "d"}, {"lastChangelogVersion", "1.2.3"}};
    CHECK(document.sync() == expected);
    CHECK(document.sync() == expected);
    document.name = "keybindings.json"; // no keys of its own
    CHECK(document.sync() == document.host);
}

TEST_CASE("a document that is the agent's stays as it is, start after start, under the managed values")
{
    Document document;
    document.host = {{"a", 1}, {"b", 1}};
    document.sync();
    document.file_class = FileClass::agent;
    document.managed = {{"m", 9}};
    document.inside = {{"a", 2}, {"c", 3}};
    for (int round = 0; round < 3; ++round)
        CHECK(document.sync() == json{{"a", 2}, {"c", 3}, {"m", 9}});
    document.managed = json::object();
    CHECK(document.sync() == json{{"a", 2}, {"c", 3}});
}

TEST_CASE("with class never what came from the host goes, and what was changed inside stays")
{
    Document document;
    document.host = json::parse(R"({"a": 1, "b": 1, "o": {"x": 1, "y": 1}, "all": {"z": 1}})");
    document.sync();
    document.file_class = FileClass::never;
    document.inside = json::parse(R"({"a": 1, "b": 2, "own": 1, "o": {"x": 1, "y": 2, "own": 1}, "all": {"z": 1}})");
    const json expected = json::parse(R"({"b": 2, "own": 1, "o": {"y": 2, "own": 1}})");
    for (int round = 0; round < 3; ++round)
        CHECK(document.sync() == expected);
}

TEST_CASE("a host that was not copied is new when it is copied again")
{
    for (const auto file_class : {FileClass::agent, FileClass::never}) {
        Document document;
        document.file_class = file_class;
        document.host = {{"a", 1}, {"b", 1}};
        document.inside = {{"a", 2}, {"c", 3}};
        CHECK(document.sync() == json{{"a", 2}, {"c", 3}});
        document.file_class = FileClass::seed;
        CHECK(document.sync() == json{{"a", 1}, {"b", 1}, {"c", 3}});
    }
}

TEST_CASE("what the agent adds to a managed object is its own, and the managed values in it are not")
{
    for (const auto file_class : {FileClass::seed, FileClass::agent}) {
        Document document;
        document.file_class = file_class;
        document.managed = {{"o", {{"m", 9}}}};
        document.sync();
        (*document.inside)["o"]["own"] = 1;
        CHECK(document.sync() == json::parse(R"({"o":{"m":9,"own":1}})"));
        document.managed = json::object();
        CHECK(document.sync() == json::parse(R"({"o":{"own":1}})"));
    }
}

TEST_CASE("of the agent's own keys the host's count when it has them, and the larger version always")
{
    struct Versions {
        json host, inside, merged;
    };
    const std::vector<Versions> rows = {
        {"1.2.3", "1.10.0", "1.10.0"}, {"1.10.0", "1.2.3", "1.10.0"}, {"2", "1.99.99", "2"}, {"1.2", "1.2.1", "1.2.1"},
        {nullptr, "1.0", "1.0"},       {"1.0", nullptr, "1.0"},       {"x", "0.1", "0.1"},   {"0.1", 5, "0.1"},
        {"1.0.0", "1.0.0", "1.0.0"},   {"99999999999", "1", "1"},     {"1.", "0.9", "1."},
    };
    for (const auto &row : rows)
        for (const auto file_class : {FileClass::seed, FileClass::mirror}) {
            CAPTURE(row.host);
            CAPTURE(row.inside);
            Document document;
            document.file_class = file_class;
            if (!row.host.is_null()) document.host["lastChangelogVersion"] = row.host;
            document.inside = json::object();
            if (!row.inside.is_null()) (*document.inside)["lastChangelogVersion"] = row.inside;
            CHECK(document.sync()["lastChangelogVersion"] == row.merged);
            CHECK(document.sync()["lastChangelogVersion"] == row.merged);
        }
    Document document;
    document.host = {{"trackingId", "host"}};
    document.inside = {{"trackingId", "inside"}, {"deviceId", "inside"}};
    CHECK(document.sync() == json{{"trackingId", "host"}, {"deviceId", "inside"}});
}

TEST_CASE("the host's lastChangelogVersion counts in any class from the first start on")
{
    for (const FileClass file_class : {FileClass::mirror, FileClass::seed, FileClass::agent, FileClass::never}) {
        CAPTURE(static_cast<int>(file_class));
        Document document;
        document.file_class = file_class;
        document.host = {{"lastChangelogVersion", "1.2.3"}};
        CHECK(document.sync()["lastChangelogVersion"] == "1.2.3");
        CHECK(document.sync()["lastChangelogVersion"] == "1.2.3");
    }
}

TEST_CASE("the keys of managed providers are found in models, and taken from the host's")
{
    const json managed = json::parse(R"({"providers":{"a":{"apiKey":"k"},"b":{"baseUrl":"u"},"c":"x"}})");
    CHECK(providers_with_keys(managed) == std::set<std::string>{"a"});
    for (const std::string text : {"{}", R"({"providers":[]})", R"({"providers":null})", R"({"models":{"a":{"apiKey":"k"}}})"})
        CHECK(providers_with_keys(json::parse(text)).empty());
    const json host = json::parse(R"({"providers":{"a":{"apiKey":"h","baseUrl":"u"},"b":{"apiKey":"h"},"c":"x"},"apiKey":"top"})");
    CHECK(without_keys(host, {"a", "c", "missing"}) ==
          json::parse(R"({"providers":{"a":{"baseUrl":"u"},"b":{"apiKey":"h"},"c":"x"},"apiKey":"top"})"));
    CHECK(without_keys(host, {}) == host);
    for (const std::string text : {"{}", R"({"providers":[1]})", R"({"providers":null})"})
        CHECK(without_keys(json::parse(text), {"a"}) == json::parse(text));
}

TEST_CASE("resource paths that leave the directory are found, as lists name them")
{
    const json settings = json::parse(R"({
        "extensions": ["own", "./own", "sub/own.ts", "/abs", "~/home", "~", "../up", "..", "a/../../b", "-/off", "!~/off", "+../on", "..own", "-own", "", 5],
        "packages": ["npm:x", "git:host/x", {"source": "/abs"}, {"source": "npm:y"}, {"source": 5}, {}],
        "skills": "/not/a/list", "themes": ["/t"], "prompts": [], "other": ["/abs"]})");
    CHECK(paths_that_leave(settings) == std::vector<std::string>{"extensions: /abs", "extensions: ~/home", "extensions: ~",
                                                                 "extensions: ../up", "extensions: ..", "extensions: a/../../b",
                                                                 "extensions: /off", "extensions: ~/off", "extensions: ../on", "themes: /t",
                                                                 "packages: /abs"});
    CHECK(paths_that_leave(json::object()).empty());
}

} // namespace documents_test
