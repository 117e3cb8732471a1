// What the reader lists of a user's config directory, and hands out when it is asked: runner/as_user/reader.hpp
#include "support/reading.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace reader_test {

TEST_CASE("documents come first, then the listing, and every file with its bytes when it is asked for" * doctest::skip(not_root()))
{
    const Host host;
    host.write("settings.json", "{}");
    host.write("models.json", "m");
    host.make("skills");
    host.make("skills/deep");
    host.write("skills/deep/SKILL.md", std::string("a\0b", 3));
    host.write("empty", "");
    const Reading reading = read_as_user(host);
    CHECK(reading.failure.status == 0);
    CHECK(reading.skipped.empty());
    REQUIRE(reading.documents.size() == 3);
    CHECK(reading.documents[0].name == "auth.json");
    CHECK_FALSE(reading.documents[0].text);
    CHECK(reading.documents[2].name == "settings.json");
    CHECK(reading.documents[2].place == host.config + "/settings.json");
    CHECK(reading.documents[2].text == "{}");
    CHECK(reading.entries.size() == 5);
    CHECK(reading.content("models.json") == "m");
    CHECK(reading.content("empty") == "");
    CHECK(reading.is("skills", EntryKind::directory));
    CHECK(reading.is("skills/deep", EntryKind::directory));
    CHECK(reading.content("skills/deep/SKILL.md") == std::string("a\0b", 3));
    CHECK(reading.find("settings.json") == nullptr);
}

TEST_CASE("the facts of a file are listed, and those of its descriptor come with it; setuid bits do not" * doctest::skip(not_root()))
{
    const Host host;
    const std::string path = host.write("tool", "12345", 0755);
    const std::array<timespec, 2> times{timespec{1, 2}, timespec{1'600'000'000, 123'456'789}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0);
    set_mode(path, 06755);
    struct stat facts {};
    REQUIRE(::stat(path.c_str(), &facts) == 0);
    const Reading reading = read_as_user(host);
    REQUIRE(reading.is("tool", EntryKind::file));
    const HostFacts &listed = reading.find("tool")->facts;
    CHECK(listed.mode == 0755);
    CHECK(listed.size == 5);
    CHECK(listed.inode == facts.st_ino);
    CHECK(listed.modified == 1'600'000'000'123'456'789);
    CHECK(listed.changed == facts.st_ctim.tv_sec * 1'000'000'000 + facts.st_ctim.tv_nsec);
    REQUIRE(reading.facts.size() == 1);
    CHECK(reading.facts[0] == listed);
}

TEST_CASE("a directory that does not exist counts as an empty one" * doctest::skip(not_root()))
{
    const Host host;
    ReadingPlan plan = host.plan();
    plan.sources[0].directory = host.home + "/none";
    const Reading reading = read_as_user(plan);
    CHECK(reading.failure.status == 0);
    REQUIRE(reading.documents.size() == 3);
    for (const auto &document : reading.documents)
        CHECK_FALSE(document.text);
    CHECK(reading.entries.empty());
}

TEST_CASE("a config directory that is a link to nothing is a mistake, not an empty one" * doctest::skip(not_root()))
{
    const Host host;
    host.link("dangling", "none");
    // As a link itself, and anywhere above: ~/.pi may lead to a file system that is not mounted.
    for (const std::string below : {"", "/agent", "/deeper/agent"}) {
        ReadingPlan plan = host.plan();
        plan.sources[0].directory = host.config + "/dangling" + below;
        const Reading reading = read_as_user(plan);
        CHECK(reading.failure.status == 78);
        CHECK(has(reading.failure.text, "does not exist: " + host.config + "/dangling is a symlink to nothing"));
        CHECK(reading.documents.empty());
    }
}

TEST_CASE("a config directory that is none, or that the user cannot read, is refused with a remedy" * doctest::skip(not_root()))
{
    const Host host;
    host.write("file", "x");
    host.make("closed", 0000);
    host.link("loop", "loop");
    REQUIRE(::mkfifo((host.config + "/fifo").c_str(), 0666) == 0);
    for (const std::string &path : {host.config + "/file", host.config + "/closed", host.config + "/loop", host.secrets,
                                    host.secrets + "/below", host.config + "/fifo"}) {
        CAPTURE(path);
        ReadingPlan plan = host.plan();
        plan.sources[0].directory = path;
        const Reading reading = read_as_user(plan);
        CHECK(reading.failure.status == 78);
        CHECK(has(reading.failure.text, "your config directory cannot be used: opening " + path));
        CHECK(has(reading.failure.text, "make it a directory that you can read"));
        CHECK(reading.documents.empty());
        CHECK(reading.entries.empty());
    }
}

TEST_CASE("a second directory is listed under its own place, without documents and classes" * doctest::skip(not_root()))
{
    const Host host;
    host.write("AGENTS.md", "config");
    Host::set(host.directory.make("home/skills"), 0700);
    for (const std::string name : {"settings.json", "x.lock", "SKILL.md"})
        Host::set(host.directory.write("home/skills/" + name, name), 0600);
    Host::set(host.directory.make("home/skills/sessions"), 0700);
    ReadingPlan plan = host.plan();
    plan.sources.push_back({host.home + "/skills", ".agents/skills", false});
    plan.sources.push_back({host.home + "/missing", ".agents/missing", false});
    const Reading reading = read_as_user(plan);
    CHECK(reading.failure.status == 0);
    CHECK(reading.documents.size() == 3);
    CHECK(reading.entries.size() == 5);
    CHECK(reading.content("AGENTS.md") == "config");
    for (const std::string name : {"settings.json", "x.lock", "SKILL.md"})
        CHECK(reading.contents.at(".agents/skills/" + name) == name);

    plan.sources[1].directory = host.secrets;
    CHECK(has(read_as_user(plan).failure.text, "your directory of skills cannot be used: opening " + host.secrets));
}

TEST_CASE("what is the agent's or nobody's stays at the top, and the same names below travel" * doctest::skip(not_root()))
{
    const Host host;
    host.make("below");
    const std::vector<std::string> names = {"models-store.json", "sessions.log", "crashes.json", "x.lock", "pi.log", "mcp-auth-refresh-1"};
    for (const auto &name : names) {
        host.write(name, "x");
        host.write("below/" + name, "x");
    }
    host.write("below/auth.json", "x"); // a document at the top only
    for (const std::string name : {"sessions", "tmp"}) {
        host.make(name);
        host.write(std::string(name) + "/file", "x");
        host.make(std::string("below/") + name);
    }
    const Reading reading = read_as_user(host);
    CHECK(reading.failure.status == 0);
    for (const auto &entry : reading.entries)
        CHECK_MESSAGE(entry.path.compare(0, 15, ".pi/agent/below") == 0, entry.path);
    CHECK(reading.entries.size() == 1 + names.size() + 1 + 2);
}

TEST_CASE("the policy's classes say what is listed, at any depth" * doctest::skip(not_root()))
{
    const Host host;
    for (const std::string name : {"npm", "npm/cache", "npm/other", "extensions", "extensions/own", "extensions/own/kept"})
        host.make(name);
    for (const std::string name : {"npm/cache/a", "npm/other/a", "npm/a", "extensions/a", "extensions/own/a", "extensions/own/kept/a"})
        host.write(name, "x");
    ReadingPlan plan = host.plan();
    plan.classes.set("npm", FileClass::agent);
    plan.classes.set("npm/cache", FileClass::mirror);
    plan.classes.set("extensions/own", FileClass::never);
    plan.classes.set("extensions/own/kept", FileClass::seed);
    const Reading reading = read_as_user(plan);
    CHECK(reading.entries.size() == 6);
    for (const std::string name : {"npm/cache/a", "extensions/a", "extensions/own/kept/a"})
        CHECK_MESSAGE(reading.is(name, EntryKind::file), name);
    for (const std::string name : {"npm/cache", "extensions", "extensions/own/kept"})
        CHECK_MESSAGE(reading.is(name, EntryKind::directory), name);
}

TEST_CASE("names of any bytes and lengths travel as they are and are escaped in notices" * doctest::skip(not_root()))
{
    const Host host;
    const std::vector<std::string> names = {"a b", "q'\"", "line\nbreak", "\xff\xfe",           "%n$HOME",
                                            "\\",  "-rf",  ".hidden",     std::string(255, 'n')};
    for (const auto &name : names)
        host.write(name, name);
    REQUIRE(::mkfifo((host.config + "/x\n\x1b[31m").c_str(), 0666) == 0);
    const Reading reading = read_as_user(host);
    for (const auto &name : names)
        CHECK_MESSAGE(reading.content(name) == name, name);
    REQUIRE(reading.skipped.size() == 1);
    CHECK(reading.skipped[0].find_first_of("\n\x1b") == std::string::npos);
}

TEST_CASE("documents that are no readable files are refused, and nothing is listed" * doctest::skip(not_root()))
{
    struct Row {
        std::string what;
        std::function<void(const Host &)> set_up;
    };
    const std::vector<Row> rows = {
        {"a FIFO", [](const Host &host) { REQUIRE(::mkfifo((host.config + "/settings.json").c_str(), 0666) == 0); }},
        {"a directory", [](const Host &host) { host.make("settings.json"); }},
        {"unreadable", [](const Host &host) { host.write("settings.json", "{}", 0000); }},
        {"a link to root's file", [](const Host &host) { host.link("settings.json", host.directory / "key"); }},
        {"a link into root's directory", [](const Host &host) { host.link("settings.json", host.secrets + "/key"); }},
        {"a loop", [](const Host &host) { host.link("settings.json", "settings.json"); }},
        {"a device", [](const Host &host) { host.link("settings.json", "/dev/zero"); }},
        {"the kernel's", [](const Host &host) { host.link("settings.json", "/proc/self/environ"); }},
        {"a dangling link", [](const Host &host) { host.link("settings.json", "none"); }},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const Host host;
        host.write("other", "x");
        row.set_up(host);
        const Reading reading = read_as_user(host);
        CHECK(reading.failure.status == 78);
        CHECK(has(reading.failure.text, host.config + "/settings.json is not a file that you can read ("));
        CHECK(has(reading.failure.text, "nothing was changed"));
        CHECK(reading.entries.empty());
    }
}

} // namespace reader_test
