// The whole config sync, from a user's directory into an agent's home: runner/root/errand/errand.hpp
#include "support/config_sync.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::test;

namespace config_sync_test {

namespace {

// Every path below `top` with the uid it belongs to.
std::vector<std::string> owners_below(const std::string &top)
{
    std::vector<std::string> list;
    for (const auto &entry : fs::recursive_directory_iterator(top)) {
        struct stat facts {};
        REQUIRE(::lstat(entry.path().c_str(), &facts) == 0);
        list.push_back(std::to_string(facts.st_uid));
    }
    return list;
}

} // namespace

TEST_CASE("the user's config arrives in the agent's home, as the agent's" * doctest::skip(not_root()))
{
    const Both both;
    both.write("settings.json", R"({"theme": "dark", "model": "host"})");
    both.write("AGENTS.md", "be careful");
    both.make("skills/one");
    both.write("skills/one/SKILL.md", "how to", 0755);
    const auto before = count_open_descriptors();
    CHECK(both.sync({{"model", "managed"}}).empty());
    CHECK(count_open_descriptors() == before);
    CHECK(both.inside("AGENTS.md") == "be careful");
    CHECK(both.inside("skills/one/SKILL.md") == "how to");
    CHECK(nlohmann::json::parse(both.inside("settings.json")) == nlohmann::json::parse(R"({"theme": "dark", "model": "managed"})"));
    const auto owners = owners_below(both.home);
    const std::string agent = std::to_string(agent_account().uid.value());
    CHECK(std::count(owners.begin(), owners.end(), agent) == static_cast<std::ptrdiff_t>(owners.size()));
}

TEST_CASE("a second sync brings what changed, whatever kind it was before" * doctest::skip(not_root()))
{
    const Both both;
    both.write("a", "file");
    both.make("b");
    both.write("b/inner", "file");
    CHECK(both.sync().empty());
    fs::remove(both.config + "/a");
    fs::remove_all(both.config + "/b");
    both.make("a");
    both.write("a/inner", "now a directory");
    both.write("b", "now a file");
    CHECK(both.sync().empty());
    CHECK(both.inside("a/inner") == "now a directory");
    CHECK(both.inside("b") == "now a file");
}

TEST_CASE("what cannot be read is named, and the rest arrives" * doctest::skip(not_root()))
{
    const Both both;
    both.write("kept", "x");
    both.write("closed", "x", 0000);
    REQUIRE(::mkfifo((both.config + "/fifo").c_str(), 0666) == 0);
    both.place.link("config/stolen", both.place / "secret");
    const auto skipped = both.sync();
    CHECK(skipped.size() == 3);
    for (const std::string name : {"closed", "fifo", "stolen"})
        CHECK_MESSAGE(std::any_of(skipped.begin(), skipped.end(), [&](const auto &text) { return has(text, both.config + "/" + name); }),
                      name);
    CHECK(both.inside("kept") == "x");
    CHECK_FALSE(fs::exists(both.home + "/.pi/agent/stolen"));
}

TEST_CASE("what the agent planted between two syncs leads nowhere" * doctest::skip(not_root()))
{
    const Both both;
    both.write("canary", "from the host");
    CHECK(both.sync().empty());
    fs::remove_all(both.home + "/.pi");
    give(both.place.link("home/.pi", both.outside), agent_account());
    CHECK(both.sync().empty());
    CHECK(both.inside("canary") == "from the host");
    CHECK_FALSE(fs::is_symlink(both.home + "/.pi"));
    fs::remove(both.home + "/.pi/agent/canary");
    give(both.place.link("home/.pi/agent/canary", both.outside + "/canary"), agent_account());
    CHECK(both.sync().empty());
    CHECK(both.inside("canary") == "from the host");
    CHECK(both.outside_is_unchanged());
}

TEST_CASE("the agent's private files and the user's private files never meet" * doctest::skip(not_root()))
{
    // The user's config leads into the agent's home: with the user's rights that is closed, although the writer could read it.
    const Both both;
    both.place.write("home/private", "the agent's");
    give(both.home + "/private", agent_account());
    both.place.link("config/peek", both.home + "/private");
    const auto skipped = both.sync();
    REQUIRE(skipped.size() == 1);
    CHECK(has(skipped[0], "Permission denied"));
    CHECK_FALSE(fs::exists(both.home + "/.pi/agent/peek"));
}

TEST_CASE("wrong settings are what the user hears of, however many files wait behind them" * doctest::skip(not_root()))
{
    const Both both;
    both.write("settings.json", "{\n  \"a\": 1,\n}");
    for (int number = 0; number < 200; ++number)
        both.write("file" + std::to_string(number), "x");
    for (int round = 0; round < 25; ++round) {
        const Caught caught = failure_of([&] { return both.sync(); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, "/config/settings.json:3:1: this is not valid JSON; correct it; nothing was changed"));
    }
    CHECK_FALSE(fs::exists(both.home + "/.pi/agent/file0"));
}

TEST_CASE("a failure of the reader is told as the reader's, not as what it made of the writer" * doctest::skip(not_root()))
{
    const Both both;
    both.write("file", "x");
    set_mode(both.config, 0000);
    for (int round = 0; round < 25; ++round) {
        const Caught caught = failure_of([&] { return both.sync(); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, "your config directory cannot be used: opening " + both.config));
    }
}

TEST_CASE("a failure of the writer is told as the writer's" * doctest::skip(not_root()))
{
    const Both both;
    for (int number = 0; number < 200; ++number)
        both.write("file" + std::to_string(number), "x");
    give(both.home, user_account());
    set_mode(both.home, 0755);
    for (int round = 0; round < 25; ++round) {
        const Caught caught = failure_of([&] { return both.sync(); });
        CHECK(caught.status == 71);
        CHECK(caught.text == "creating .pi: Permission denied");
    }
}

TEST_CASE("without a config directory the managed settings alone arrive" * doctest::skip(not_root()))
{
    const Both both;
    fs::remove(both.config);
    CHECK(both.sync({{"a", 1}}).empty());
    CHECK(nlohmann::json::parse(both.inside("settings.json")) == nlohmann::json{{"a", 1}});
}

} // namespace config_sync_test
