// Whose which part of the config directory is: common/policy/policy.hpp
#include "common/policy/policy.hpp"

#include <doctest/doctest.h>
#include <vector>

using namespace pi_agent;

namespace config_classes_test {

namespace {

std::string class_name(const ConfigClasses &classes, std::string_view path)
{
    return std::string(to_string(classes.of(path)));
}

} // namespace

TEST_CASE("without rules each file is whose it is known to be")
{
    struct Row {
        std::string path, file_class;
    };
    const std::vector<Row> rows = {
        {"settings.json", "seed"},
        {"auth.json", "seed"},
        {"mcp-auth.json", "seed"},
        {"models.json", "mirror"},
        {"keybindings.json", "mirror"},
        {"mcp.json", "mirror"},
        {"AGENTS.md", "mirror"},
        {"AGENTS.override.md", "mirror"},
        {"CLAUDE.md", "mirror"},
        {"SYSTEM.md", "mirror"},
        {"APPEND_SYSTEM.MD", "mirror"},
        {"extensions", "mirror"},
        {"extensions/one/index.ts", "mirror"},
        {"skills/a/SKILL.md", "mirror"},
        {"prompts/p.md", "mirror"},
        {"themes/t.json", "mirror"},
        {"anything", "mirror"},
        {"sessions", "agent"},
        {"sessions/a/b.jsonl", "agent"},
        {"bin/fd", "once"},
        {"git/x", "once"},
        {"npm/node_modules/x/index.js", "once"},
        {"models-store.json", "agent"},
        {"trust.json", "seed"},
        {"crashes.json", "agent"},
        {"pi.log", "agent"},
        {"mcp.log", "agent"},
        {"mcp.log.1", "agent"},
        {"mcp.log.2", "mirror"},
        {".log", "agent"},
        {"settings.json.lock", "never"},
        {"auth.json.lock/x", "never"},
        {".lock", "never"},
        {"tmp", "never"},
        {"tmp/x", "never"},
        {"mcp-auth-refresh-1", "never"},
        {"mcp-auth-refresh-", "never"},
        // A name means what it does at the top only, and only as a whole.
        {"skills/sessions", "mirror"},
        {"skills/auth.json", "mirror"},
        {"skills/x.lock", "mirror"},
        {"extensions/tmp/x", "mirror"},
        {"prompts/x.log", "mirror"},
        {"sessions2", "mirror"},
        {"tmpx", "mirror"},
        {"settings.json.bak", "mirror"},
        {"Sessions", "mirror"},
        {"x.lock2", "mirror"},
        {"xmcp-auth-refresh-1", "mirror"},
    };
    for (const auto &row : rows)
        CHECK_MESSAGE(class_name(ConfigClasses(), row.path) == row.file_class, row.path);
}

TEST_CASE("of several rules the longest counts, and each counts more than the defaults")
{
    ConfigClasses classes;
    classes.set("extensions", FileClass::seed);
    classes.set("extensions/own", FileClass::agent);
    classes.set("extensions/own/kept", FileClass::mirror);
    classes.set("sessions", FileClass::never);
    classes.set("npm/cache", FileClass::mirror);
    classes.set("settings.json", FileClass::mirror);
    classes.set("x.lock", FileClass::agent);
    CHECK(class_name(classes, "extensions") == "seed");
    CHECK(class_name(classes, "extensions/a/b") == "seed");
    CHECK(class_name(classes, "extensions/own") == "agent");
    CHECK(class_name(classes, "extensions/own/x") == "agent");
    CHECK(class_name(classes, "extensions/own/kept/x/y") == "mirror");
    CHECK(class_name(classes, "extensions/owner") == "seed");
    CHECK(class_name(classes, "extensionsx") == "mirror");
    CHECK(class_name(classes, "sessions/a") == "never");
    CHECK(class_name(classes, "npm") == "once");
    CHECK(class_name(classes, "npm/cache/x") == "mirror");
    CHECK(class_name(classes, "npm/cachex") == "once");
    CHECK(class_name(classes, "settings.json") == "mirror");
    CHECK(class_name(classes, "x.lock/a") == "agent");
    classes.set("sessions", FileClass::seed); // said again
    CHECK(class_name(classes, "sessions/a") == "seed");
    CHECK(classes.rules().size() == 7);
}

TEST_CASE("a directory is looked into when something beneath it may be copied")
{
    ConfigClasses classes;
    classes.set("npm", FileClass::agent);
    classes.set("git", FileClass::agent);
    classes.set("bin", FileClass::agent);
    classes.set("npm/deep/cache", FileClass::mirror);
    classes.set("git/a", FileClass::never);
    classes.set("git-mirror", FileClass::mirror);
    classes.set("tmp/seed", FileClass::seed);
    classes.set("skills", FileClass::agent);
    for (const std::string path :
         {"npm", "npm/deep", "npm/deep/cache", "npm/deep/cache/x", "tmp", "tmp/seed", "prompts", "git-mirror", "auth.json"})
        CHECK_MESSAGE(classes.copies_below(path), path);
    for (const std::string path :
         {"git", "git/a", "npm/deeper", "npm/x", "sessions", "skills", "skills/x", "bin", "tm", "tmp/other", "x.lock"})
        CHECK_MESSAGE(classes.copies_below(path) == (path == "tm"), path);
}

TEST_CASE("what is brought in once goes together: what the rule names, a name at the top, and each session by itself")
{
    ConfigClasses classes;
    CHECK(classes.whole_of("npm/node_modules/x/i.js") == "npm");
    CHECK(classes.whole_of("bin") == "bin");
    CHECK(classes.whole_of("sessions/a/b.jsonl") == "sessions/a/b.jsonl");
    classes.set("skills/own", FileClass::once);
    classes.set("sessions/a", FileClass::once);
    CHECK(classes.whole_of("skills/own/x/y") == "skills/own");
    CHECK(classes.whole_of("skills/own") == "skills/own");
    CHECK(classes.whole_of("sessions/a/b.jsonl") == "sessions/a/b.jsonl");
}

TEST_CASE("a directory has one class when nothing beneath it has another")
{
    ConfigClasses classes;
    classes.set("skills/own/kept", FileClass::agent);
    classes.set("prompts/a", FileClass::mirror);
    CHECK_FALSE(classes.of_all("").has_value());
    CHECK_FALSE(classes.of_all("skills").has_value());
    CHECK_FALSE(classes.of_all("skills/own").has_value());
    CHECK(classes.of_all("skills/own/kept/x") == FileClass::agent);
    CHECK(classes.of_all("skills/owner") == FileClass::mirror);
    CHECK(classes.of_all("prompts") == FileClass::mirror);
    CHECK(classes.of_all("npm") == FileClass::once);
}

TEST_CASE("the names of the classes are read and written")
{
    for (const auto file_class : {FileClass::mirror, FileClass::seed, FileClass::once, FileClass::agent, FileClass::never})
        CHECK(parse_file_class(to_string(file_class)) == file_class);
    CHECK(to_string(FileClass::never) == "never");
    for (const std::string text : {"", "Mirror", "mirror ", "mirrored", "copy"})
        CHECK_FALSE(parse_file_class(text).has_value());
}

} // namespace config_classes_test
