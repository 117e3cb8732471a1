// Root's stamp and the agent's copy of it: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "runner/as_agent/writer.hpp"
#include "support/writing.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace version_stamp_test {

namespace {

struct Stamped : Agent {
    Stamped() { state.meta = open_path(place.make("meta"), O_RDONLY | O_DIRECTORY), state.home_path = home; }
    [[nodiscard]] Caught copy(const Version &version) const
    {
        const AsRoot root = AsRoot::claim();
        const UniqueFd into = open_path(home, O_RDONLY | O_DIRECTORY);
        const UniqueFd making = open_path(staging, O_RDONLY | O_DIRECTORY);
        Child child(root, "copying", agent_account(), {into.get(), making.get()}, [&](const AsUser &self, FdRef channel) {
            copy_version(self, into, making, version);
            send_answer(channel, "done");
        });
        return failure_of([&] { return child.receive(); });
    }
    [[nodiscard]] std::string copied() const { return content_of(home + "/.local/state/.pi-agent-version"); }

    StateDirectory state;
};

} // namespace

TEST_CASE("a stamp is read as it was written, over what a killed start left, and a home without one was never used")
{
    const Stamped agent;
    CHECK_FALSE(read_stamp(agent.state));
    agent.place.write("meta/version.new", "9.9.9 half a stamp");
    for (const Version version : {Version{0, 10, 2}, Version{1, 0, 0}}) {
        write_stamp(agent.state, version);
        CHECK(read_stamp(agent.state) == version);
    }
    CHECK(content_of(agent.place / "meta/version") == "1.0.0\n");
    CHECK_FALSE(fs::exists(agent.place / "meta/version.new"));
}

TEST_CASE("a stamp that is no version is an error that names it and what to do, not a guess")
{
    const Stamped agent;
    for (const std::string text : {"", "\n", "0.1", "v0.1.0", "0.1.0\n\n", "0.1.0\n0.2.0\n", "\x1b[2J"}) {
        CAPTURE(text);
        agent.place.write("meta/version", text);
        const Caught caught = failure_of([&] { return read_stamp(agent.state); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, agent.place / "meta/version must hold the version of pi-agent that last used the agent's home"));
        CHECK(has(caught.text, "remove it: then the home counts as new"));
        CHECK_FALSE(has(caught.text, "\x1b"));
    }
    agent.place.write("meta/version", std::string(1000, '1'));
    CHECK(failure_of([&] { return read_stamp(agent.state); }).status == 78);
}

TEST_CASE("the agent's copy is made, and restored from whatever the agent made of it" * doctest::skip(not_root()))
{
    const Stamped agent;
    CHECK(text_of(agent.copy({0, 1, 0})) == "0 ");
    CHECK(agent.copied() == "0.1.0\n");
    CHECK(text_of(agent.copy({0, 2, 0})) == "0 ");
    CHECK(agent.copied() == "0.2.0\n");
    const std::string path = agent.home + "/.local/state/.pi-agent-version";
    const std::vector<std::function<void()>> plants = {
        [&] { agent.write(".local/state/.pi-agent-version", "9.9.9\n"); },
        [&] { agent.write(".local/state/.pi-agent-version", "9.9.9"); },
        [&] { agent.link(".local/state/.pi-agent-version", agent.outside + "/new"); },
        [&] { agent.link(".local/state/.pi-agent-version", agent.outside + "/canary"); },
        [&] { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); },
        [&] { agent.make(".local/state/.pi-agent-version/d"); },
        [&] { fs::remove_all(agent.home + "/.local"); },
        [&] { set_mode(agent.home + "/.local/state", 0500); },
        [&] { set_mode(agent.home + "/.local", 0000); },
    };
    for (const auto &plant : plants) {
        fs::remove_all(path);
        plant();
        CHECK(text_of(agent.copy({0, 2, 0})) == "0 ");
        CHECK(agent.copied() == "0.2.0\n");
        CHECK_FALSE(fs::is_symlink(path));
        CHECK(agent.outside_is_unchanged());
        CHECK_FALSE(agent.has_leftovers());
    }
}

TEST_CASE("a copy that is right is not written again" * doctest::skip(not_root()))
{
    const Stamped agent;
    REQUIRE(text_of(agent.copy({0, 1, 0})) == "0 ");
    struct stat before {};
    struct stat after {};
    const std::string path = agent.home + "/.local/state/.pi-agent-version";
    REQUIRE(::stat(path.c_str(), &before) == 0);
    CHECK(text_of(agent.copy({0, 1, 0})) == "0 ");
    REQUIRE(::stat(path.c_str(), &after) == 0);
    CHECK(before.st_ino == after.st_ino);
}

TEST_CASE("where the agent has no directory above the copy there is none" * doctest::skip(not_root()))
{
    for (const std::string name : {".local", ".local/state"}) {
        CAPTURE(name);
        for (const bool is_link : {true, false}) {
            const Stamped agent;
            agent.make(fs::path(name).parent_path().string());
            is_link ? agent.link(name, agent.outside) : agent.write(name, "mine");
            CHECK(text_of(agent.copy({0, 1, 0})) == "0 ");
            CHECK(agent.outside_is_unchanged());
            CHECK(fs::is_symlink(agent.home + "/" + name) == is_link);
        }
    }
}

} // namespace version_stamp_test
