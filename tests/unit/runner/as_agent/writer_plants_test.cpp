// What the agent planted in its home leads the writer nowhere, and what it made there is not lost: runner/as_agent/writer.hpp
#include "support/writing.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace writer_plants_test {

namespace {

struct Row {
    std::string what;
    std::function<void(const Agent &)> plant;
    std::string kept; // the path that is set aside; "": none
};

void plant_nothing_above(const Agent &agent)
{
    agent.make(".pi/agent/d");
}

const std::vector<Row> rows = {
    {".pi is a link", [](const Agent &agent) { agent.link(".pi", agent.outside); }, ""},
    {".pi is a relative link", [](const Agent &agent) { agent.link(".pi", "../outside"); }, ""},
    {".pi is a file", [](const Agent &agent) { agent.write(".pi", "x"); }, ""},
    {".pi/agent is a link", [](const Agent &agent) { agent.make(".pi"), agent.link(".pi/agent", agent.outside); }, ""},
    {".pi/agent is a dangling link", [](const Agent &agent) { agent.make(".pi"), agent.link(".pi/agent", agent.outside + "/new"); }, ""},
    {"a directory is a link", [](const Agent &agent) { agent.make(".pi/agent"), agent.link(".pi/agent/d", agent.outside); }, ""},
    {"a directory is a file", [](const Agent &agent) { agent.make(".pi/agent"), agent.write(".pi/agent/d", "mine"); }, "d"},
    {"a file is a link",
     [](const Agent &agent) { plant_nothing_above(agent), agent.link(".pi/agent/d/canary", agent.outside + "/canary"); }, ""},
    {"a file is a dangling link",
     [](const Agent &agent) { plant_nothing_above(agent), agent.link(".pi/agent/d/canary", agent.outside + "/new"); }, ""},
    {"a file is an empty directory", [](const Agent &agent) { agent.make(".pi/agent/d/canary"); }, ""},
    {"a file is a directory with a link in it",
     [](const Agent &agent) { agent.make(".pi/agent/d/canary/x"), agent.link(".pi/agent/d/canary/x/out", agent.outside); }, "d/canary"},
    {"a file is a directory nobody may enter",
     [](const Agent &agent) {
         agent.make(".pi/agent/d/canary/x");
         set_mode(agent / "d/canary/x", 0000);
         set_mode(agent / "d/canary", 0555);
     },
     "d/canary"},
    {"a directory is closed to its owner",
     [](const Agent &agent) {
         plant_nothing_above(agent);
         set_mode(agent / "d", 0000);
     },
     ""},
    {"a directory is a FIFO",
     [](const Agent &agent) {
         agent.make(".pi/agent");
         REQUIRE(::mkfifo((agent / "d").c_str(), 0666) == 0);
     },
     ""},
    {"a file is a FIFO",
     [](const Agent &agent) {
         plant_nothing_above(agent);
         REQUIRE(::mkfifo((agent / "d/canary").c_str(), 0666) == 0);
     },
     ""},
    {"a file is a hard link to one outside",
     [](const Agent &agent) {
         plant_nothing_above(agent);
         fs::create_hard_link(agent.outside + "/canary", agent / "d/canary");
     },
     ""},
    {"settings are a link",
     [](const Agent &agent) { agent.make(".pi/agent"), agent.link(".pi/agent/settings.json", agent.outside + "/canary"); }, ""},
    {"settings are a dangling link",
     [](const Agent &agent) { agent.make(".pi/agent"), agent.link(".pi/agent/settings.json", agent.outside + "/new"); }, ""},
    {"settings are a directory",
     [](const Agent &agent) { agent.make(".pi/agent/settings.json/d"), agent.link(".pi/agent/settings.json/out", agent.outside); },
     "settings.json"},
    {"settings are a FIFO",
     [](const Agent &agent) {
         agent.make(".pi/agent");
         REQUIRE(::mkfifo((agent / "settings.json").c_str(), 0666) == 0);
     },
     ""},
    {"settings are huge",
     [](const Agent &agent) { agent.make(".pi/agent"), agent.write(".pi/agent/settings.json", std::string(9'000'000, ' ')); }, ""},
    {"the lock of the settings is a stale link",
     [](const Agent &agent) {
         agent.make(".pi/agent");
         agent.link(".pi/agent/settings.json.lock", agent.outside);
         const std::array<timespec, 2> times{timespec{1, 0}, timespec{1, 0}};
         REQUIRE(::utimensat(AT_FDCWD, (agent / "settings.json.lock").c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0);
     },
     ""},
};

} // namespace

TEST_CASE("whatever the agent planted is replaced and never followed" * doctest::skip(not_root()))
{
    for (const auto &row : rows)
        for (const bool was_synced : {false, true}) { // planted before the first sync, or between two
            CAPTURE(row.what);
            CAPTURE(was_synced);
            const Agent agent;
            Listing host;
            host.document("settings.json", R"({"a": 1})");
            host.directory("d");
            host.file("d/canary", "from the host");
            const WritingPlan plan = plan_with({{"settings.json", R"({"b": 2})"}});
            if (was_synced) {
                REQUIRE(text_of(write_as_agent(agent, host, plan).caught) == "0 ");
                fs::remove_all(agent.home + "/.pi");
            }
            row.plant(agent);
            const Written written = write_as_agent(agent, host, plan);
            CHECK_MESSAGE(written.caught.status == 0, written.caught.text);
            CHECK(content_of(agent / "d/canary") == "from the host");
            CHECK(content_of(agent / "settings.json") == "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
            for (const std::string name : {"", "d", "d/canary", "settings.json"})
                CHECK_FALSE(fs::is_symlink(agent / name));
            CHECK_FALSE(fs::is_symlink(agent.home + "/.pi"));
            CHECK_FALSE(fs::exists(fs::symlink_status(agent / "settings.json.lock")));
            CHECK(agent.outside_is_unchanged());
            CHECK_FALSE(agent.has_leftovers());
            for (const std::string name : {"d", "d/canary", "settings.json"})
                CHECK_MESSAGE(agent.kept(name).size() == (name == row.kept ? 1 : 0), name);
            CHECK(written.notices.size() == (row.kept.empty() ? 0 : 1));
            if (!row.kept.empty()) CHECK(has(written.notices.at(0), fs::path(agent.kept(row.kept).at(0)).filename()));
        }
}

TEST_CASE("a file is deleted from a directory that the agent made unwritable" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    host.directory("d");
    host.file("d/f", "x");
    host.file("d/kept", "x");
    REQUIRE(text_of(write_as_agent(agent, host).caught) == "0 ");
    set_mode(agent / "d", 0500);
    Listing without;
    without.directory("d");
    without.file("d/kept", "y");
    CHECK(text_of(write_as_agent(agent, without).caught) == "0 ");
    CHECK_FALSE(fs::exists(agent / "d/f"));
    CHECK(content_of(agent / "d/kept") == "y");
}

TEST_CASE("a directory to be removed that became a link costs nothing behind it" * doctest::skip(not_root()))
{
    const Agent agent;
    Listing host;
    host.directory("d");
    host.file("d/canary", "x");
    REQUIRE(text_of(write_as_agent(agent, host).caught) == "0 ");
    fs::remove_all(agent / "d");
    agent.link(".pi/agent/d", agent.outside);
    CHECK(text_of(write_as_agent(agent, Listing()).caught) == "0 ");
    CHECK(agent.outside_is_unchanged());
    CHECK(fs::is_symlink(agent / "d")); // the agent's own, from now on
}

} // namespace writer_plants_test
