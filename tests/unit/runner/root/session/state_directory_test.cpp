// Whose the directories of a user's state are, and who gets the lock: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <chrono>
#include <sys/file.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace state_directory_test {

namespace {

// Below /srv: every directory above the state is to be root's.
struct State {
    TemporaryDirectory directory{"/srv"};
    AsRoot root = AsRoot::claim();
    Account agent = agent_account();

    State()
    {
        set_mode(directory.path(), 0755);
        directory.make("users"); // by apply
    }
    StateDirectory open()
    {
        return open_state_directory(root, directory.path(), "alice", agent, [] {});
    }
    [[nodiscard]] std::string facts(const std::string &name) const
    {
        struct stat found {};
        REQUIRE(::lstat((directory / name).c_str(), &found) == 0);
        return std::to_string(found.st_uid) + ":" + std::to_string(found.st_gid) + " " + std::to_string(found.st_mode & 07777U);
    }
    [[nodiscard]] std::string of_agent(mode_t mode) const
    {
        return std::to_string(agent.uid.value()) + ":" + std::to_string(agent.gid.value()) + " " + std::to_string(mode);
    }
};

std::string of_root(mode_t mode)
{
    return "0:0 " + std::to_string(mode);
}

} // namespace

TEST_CASE("what is missing is made, each with its owner and mode, under any umask" * doctest::skip(not_root()))
{
    for (const mode_t mask : {0U, 0777U}) {
        State state;
        const mode_t before = ::umask(mask);
        const StateDirectory opened = state.open();
        ::umask(before);
        CHECK(opened.home_path == state.directory / "users/alice/home");
        CHECK(state.facts("users") == of_root(0711));
        CHECK(state.facts("users/alice") == of_root(0711));
        CHECK(state.facts("users/alice/meta") == of_root(0700));
        CHECK(state.facts("users/alice/home") == state.of_agent(0700));
        struct stat home {};
        REQUIRE(::stat(opened.home_path.c_str(), &home) == 0);
        CHECK(inode_of(opened.home) == home.st_ino);
    }
}

TEST_CASE("a home that the agent opened to others is closed again, and what is in it stays" * doctest::skip(not_root()))
{
    State state;
    static_cast<void>(state.open());
    state.directory.write("users/alice/home/kept", "x");
    set_mode(state.directory / "users/alice/home", 0777);
    set_mode(state.directory / "users/alice", 0777);
    static_cast<void>(state.open());
    CHECK(state.facts("users/alice/home") == state.of_agent(0700));
    CHECK(state.facts("users/alice") == of_root(0711));
    CHECK(std::filesystem::exists(state.directory / "users/alice/home/kept"));
}

TEST_CASE("a directory of another account is refused and not given away" * doctest::skip(not_root()))
{
    for (const std::string name : {"users", "users/alice", "users/alice/meta", "users/alice/home"}) {
        CAPTURE(name);
        State state;
        static_cast<void>(state.open());
        state.directory.write("users/alice/home/kept", "x");
        give(state.directory / name, user_account());
        const std::string before = state.facts(name);
        const Caught caught = failure_of([&] { return state.open(); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, state.directory / name + " belongs to " + before.substr(0, before.find(' '))));
        CHECK(state.facts(name) == before);
    }
}

TEST_CASE("a link or a file in the place of a directory is refused" * doctest::skip(not_root()))
{
    for (const std::string name : {"users", "users/alice", "users/alice/meta", "users/alice/home"}) {
        CAPTURE(name);
        State state;
        const std::string elsewhere = state.directory.make("elsewhere");
        const std::string before = state.facts("elsewhere");
        if (name == "users")
            std::filesystem::remove(state.directory / name); // which apply made
        else
            state.directory.make(std::filesystem::path(name).parent_path().string());
        state.directory.link(name, elsewhere);
        CHECK(has(failure_of([&] { return state.open(); }).text, "opening " + state.directory / name));
        std::filesystem::remove(state.directory / name);
        state.directory.write(name, "");
        CHECK(has(failure_of([&] { return state.open(); }).text, "opening " + state.directory / name));
        CHECK(state.facts("elsewhere") == before);
        CHECK(std::filesystem::is_empty(elsewhere));
    }
}

TEST_CASE("a state directory that others can change is refused" * doctest::skip(not_root()))
{
    State state;
    set_mode(state.directory.path(), 0777);
    CHECK(has(failure_of([&] { return state.open(); }).text, "writable by others than root"));
    CHECK(std::filesystem::is_empty(state.directory / "users"));
}

TEST_CASE("no start makes the directory of all homes: without it, they are at another place" * doctest::skip(not_root()))
{
    State state;
    std::filesystem::remove(state.directory / "users");
    const Caught caught = failure_of([&] { return state.open(); });
    CHECK(caught.status == 78);
    CHECK(has(caught.text, "the agents' homes are not in " + state.directory.path()));
    CHECK(has(caught.text, "sudo pi-agentctl state move"));
    CHECK(std::filesystem::is_empty(state.directory.path()));
}

TEST_CASE("one start at a time touches a user's state, and another user's does not wait" * doctest::skip(not_root()))
{
    State state;
    StateDirectory first = state.open();
    CHECK(open_state_directory(state.root, state.directory.path(), "bob", state.agent, [] {}).lock.is_open());
    const auto start = std::chrono::steady_clock::now();
    const Caught caught = failure_of([&] { return state.open(); });
    const auto waited = std::chrono::steady_clock::now() - start;
    CHECK(caught.status == 75);
    CHECK(has(caught.text, "another start of the agent of alice"));
    CHECK(waited >= std::chrono::milliseconds(4900));
    CHECK(waited < std::chrono::seconds(15));
    first.lock.reset();
    CHECK(state.open().lock.is_open());
}

} // namespace state_directory_test
