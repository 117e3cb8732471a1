// What a home is given, and what it is not: runner/as_agent/writer.hpp
#include "runner/as_agent/writer.hpp"

#include "runner/wire/answer.hpp"
#include "support/writing.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace seed_defaults_test {

namespace {

struct Seeded : Agent {
    Seeded()
    {
        give_default(".profile", "profile");
        give_default(".config/tool/deep/er/file", "deep");
        give_default(".local/bin/program", "#!/bin/sh\n");
        set_mode(defaults + "/.local/bin/program", 0755);
    }
    void give_default(const std::string &name, const std::string &text) const
    {
        place.make(fs::path("defaults/" + name).parent_path().string());
        place.write("defaults/" + name, text);
    }
    // As a start does it, as the agent's account.
    [[nodiscard]] Caught seed() const
    {
        const AsRoot root = AsRoot::claim();
        const UniqueFd from = open_path(defaults, O_RDONLY | O_DIRECTORY);
        const UniqueFd into = open_path(home, O_RDONLY | O_DIRECTORY);
        const UniqueFd making = open_path(staging, O_RDONLY | O_DIRECTORY);
        Child child(root, "seeding", agent_account(), {from.get(), into.get(), making.get()}, [&](const AsUser &self, FdRef channel) {
            seed_defaults(self, into, making, from, channel);
            send_answer(channel, "done");
        });
        return failure_of([&] { return child.receive(); });
    }
    void expect_seeding() const { CHECK(text_of(seed()) == "0 "); }
    [[nodiscard]] std::string at(const std::string &name) const { return home + "/" + name; }
    [[nodiscard]] mode_t mode_of(const std::string &name) const
    {
        struct stat facts {};
        REQUIRE(::lstat(at(name).c_str(), &facts) == 0);
        CHECK(facts.st_uid == agent_account().uid.value());
        CHECK((!S_ISREG(facts.st_mode) || facts.st_nlink == 1));
        return facts.st_mode & 07777U;
    }

    std::string defaults = place.make("defaults");
};

} // namespace

TEST_CASE("every default file comes into an empty home, at any depth, as the agent's own" * doctest::skip(not_root()))
{
    const Seeded agent;
    agent.expect_seeding();
    CHECK(content_of(agent.at(".profile")) == "profile");
    CHECK(content_of(agent.at(".config/tool/deep/er/file")) == "deep");
    CHECK(agent.mode_of(".profile") == 0600);
    CHECK(agent.mode_of(".config/tool") == 0700);
    CHECK(agent.mode_of(".local/bin/program") == 0700);
    CHECK_FALSE(agent.has_leftovers());
}

TEST_CASE("what the agent has stays as it is, and what it removed comes back" * doctest::skip(not_root()))
{
    const Seeded agent;
    agent.expect_seeding();
    agent.write(".profile", "mine");
    agent.write(".config/own", "mine");
    fs::remove(agent.at(".config/tool/deep/er/file"));
    fs::remove_all(agent.at(".local"));
    agent.expect_seeding();
    CHECK(content_of(agent.at(".profile")) == "mine");
    CHECK(content_of(agent.at(".config/own")) == "mine");
    CHECK(content_of(agent.at(".config/tool/deep/er/file")) == "deep");
    CHECK(content_of(agent.at(".local/bin/program")) == "#!/bin/sh\n");
}

TEST_CASE("a start with nothing to give changes nothing" * doctest::skip(not_root()))
{
    const Seeded agent;
    agent.expect_seeding();
    const auto before = fs::last_write_time(agent.at(".config/tool/deep/er"));
    set_mode(agent.at(".profile"), 0400);
    agent.expect_seeding();
    CHECK(fs::last_write_time(agent.at(".config/tool/deep/er")) == before);
    CHECK(agent.mode_of(".profile") == 0400);
}

TEST_CASE("whatever has the name of a file stands for it, a link to nothing too" * doctest::skip(not_root()))
{
    const std::vector<std::function<void(const Seeded &)>> plants = {
        [](const Seeded &agent) { agent.link(".profile", agent.outside + "/new"); },
        [](const Seeded &agent) { agent.link(".profile", agent.outside + "/canary"); },
        [](const Seeded &agent) { agent.link(".profile", ".profile"); },
        [](const Seeded &agent) { agent.make(".profile/d"); },
        [](const Seeded &agent) { REQUIRE(::mkfifo(agent.at(".profile").c_str(), 0600) == 0); },
    };
    for (const auto &plant : plants) {
        const Seeded agent;
        plant(agent);
        const fs::file_type before = fs::symlink_status(agent.at(".profile")).type();
        agent.expect_seeding();
        CHECK(fs::symlink_status(agent.at(".profile")).type() == before);
        CHECK(content_of(agent.at(".config/tool/deep/er/file")) == "deep"); // the rest is there
        CHECK(agent.outside_is_unchanged());
        CHECK_FALSE(agent.has_leftovers());
    }
}

TEST_CASE("what stands where a directory is needed leaves out what is beneath it, and is left" * doctest::skip(not_root()))
{
    const std::vector<std::pair<std::string, std::function<void(const Seeded &, const std::string &)>>> plants = {
        {"a link outside", [](const Seeded &agent, const std::string &name) { agent.link(name, agent.outside); }},
        {"a link inside", [](const Seeded &agent, const std::string &name) { agent.make("own"), agent.link(name, agent.at("own")); }},
        {"a link to nothing", [](const Seeded &agent, const std::string &name) { agent.link(name, agent.outside + "/new"); }},
        {"a file", [](const Seeded &agent, const std::string &name) { agent.write(name, "mine"); }},
        {"a FIFO", [](const Seeded &agent, const std::string &name) { REQUIRE(::mkfifo(agent.at(name).c_str(), 0600) == 0); }},
        {"a closed directory", [](const Seeded &agent, const std::string &name) { agent.make(name), set_mode(agent.at(name), 0000); }},
        {"an unwritable one", [](const Seeded &agent, const std::string &name) { agent.make(name), set_mode(agent.at(name), 0500); }},
    };
    for (const auto &plant : plants)
        for (const std::string name : {".config", ".config/tool", ".config/tool/deep/er"}) {
            CAPTURE(plant.first);
            CAPTURE(name);
            const Seeded agent;
            agent.make(fs::path(name).parent_path().string());
            plant.second(agent, name);
            const fs::file_status before = fs::symlink_status(agent.at(name));
            agent.expect_seeding();
            CHECK(fs::symlink_status(agent.at(name)).type() == before.type());
            CHECK(fs::symlink_status(agent.at(name)).permissions() == before.permissions());
            CHECK_FALSE(fs::exists(agent.at(".config/tool/deep/er/file")));
            CHECK((!fs::exists(agent.home + "/own") || fs::is_empty(agent.home + "/own")));
            CHECK(agent.outside_is_unchanged());
            CHECK(content_of(agent.at(".profile")) == "profile");
            CHECK_FALSE(agent.has_leftovers());
        }
}

TEST_CASE("what a killed start left in the making is gone, and is in nobody's way" * doctest::skip(not_root()))
{
    const Seeded agent;
    give(agent.place.write("staging/1", "half"), agent_account());
    agent.expect_seeding();
    CHECK(content_of(agent.at(".profile")) == "profile");
    CHECK_FALSE(agent.has_leftovers());
}

TEST_CASE("a default that is neither file nor directory, or that the agent may not read, is an error that names it" *
          doctest::skip(not_root()))
{
    const Seeded agent;
    agent.place.link("defaults/.config/link", "/etc/passwd");
    const Caught link = agent.seed();
    CHECK(link.status == 78);
    CHECK(has(link.text, "/defaults/.config/link is neither a file nor a directory"));
    CHECK_FALSE(fs::exists(fs::symlink_status(agent.at(".config/link"))));
    fs::remove(agent.defaults + "/.config/link");
    agent.give_default(".closed", "x");
    set_mode(agent.defaults + "/.closed", 0600);
    const Caught closed = agent.seed();
    CHECK(closed.status == 71);
    CHECK(has(closed.text, "/defaults/.closed as the agent's account: Permission denied"));
}

} // namespace seed_defaults_test
