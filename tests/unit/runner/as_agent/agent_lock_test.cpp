// The agent's own lock on a file: runner/as_agent/writer.hpp
#include "runner/as_agent/writer.hpp"

#include "common/base/channel.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace agent_lock_test {

namespace {

namespace fs = std::filesystem;

struct Place {
    Place() : fd(open_path(directory.path(), O_RDONLY | O_DIRECTORY)), channel(make_channel()), lock(directory / "f.json.lock") {}
    // The lock's time of modification, seconds from now.
    void age(int seconds, const std::string &path = "") const
    {
        const std::array<timespec, 2> times{timespec{::time(nullptr) + seconds, 0}, timespec{::time(nullptr) + seconds, 0}};
        REQUIRE(::utimensat(AT_FDCWD, (path.empty() ? lock : path).c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0);
    }
    [[nodiscard]] double seconds_to_lock(const std::string &name = "f.json") const
    {
        const auto before = Clock::now();
        {
            const AgentLock held(fd, name, channel.first);
            CHECK(fs::is_directory(fs::symlink_status(directory / (name + ".lock"))));
            CHECK(fs::is_empty(directory / (name + ".lock")));
            CHECK(is_locked_by_agent(fd, name));
        }
        CHECK_FALSE(fs::exists(fs::symlink_status(directory / (name + ".lock"))));
        return std::chrono::duration<double>(Clock::now() - before).count();
    }

    TemporaryDirectory directory;
    UniqueFd fd;
    std::pair<UniqueFd, UniqueFd> channel;
    std::string lock;
};

} // namespace

TEST_CASE("a free lock is taken at once and given back")
{
    const Place place;
    CHECK_FALSE(is_locked_by_agent(place.fd, "f.json"));
    CHECK(place.seconds_to_lock() < 1);
    CHECK(place.seconds_to_lock() < 1);
}

TEST_CASE("a fresh lock is waited for, and progress told meanwhile")
{
    const Place place;
    fs::create_directory(place.lock);
    CHECK(is_locked_by_agent(place.fd, "f.json"));
    std::thread holder([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        fs::remove(place.lock);
    });
    const double waited = place.seconds_to_lock();
    holder.join();
    CHECK(waited > 0.2);
    CHECK(waited < 5);
    CHECK(wait_for_input(place.channel.second, Clock::now()));
}

TEST_CASE("a stale lock is taken over, whatever it is")
{
    struct Row {
        std::string what;
        std::function<void(const Place &)> make;
        int age;
    };
    const std::vector<Row> rows = {
        {"a directory", [](const Place &place) { fs::create_directory(place.lock); }, -12},
        {"a directory that holds things",
         [](const Place &place) {
             place.directory.make("f.json.lock/a/b");
             place.directory.write("f.json.lock/a/x", "x");
         },
         -3600},
        {"a directory of the distant future", [](const Place &place) { fs::create_directory(place.lock); }, 3600},
        {"a file", [](const Place &place) { place.directory.write("f.json.lock", "x"); }, -60},
        {"a link to a fresh directory", [](const Place &place) { place.directory.link("f.json.lock", place.directory.make("elsewhere")); },
         -60},
        {"a FIFO", [](const Place &place) { REQUIRE(::mkfifo(place.lock.c_str(), 0600) == 0); }, 60},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const Place place;
        row.make(place);
        place.age(row.age);
        CHECK_FALSE(is_locked_by_agent(place.fd, "f.json"));
        CHECK(place.seconds_to_lock() < 1);
        CHECK(fs::exists(place.directory / "elsewhere") == (row.what == "a link to a fresh directory"));
    }
}

TEST_CASE("credentials are locked for longer: a refresh asks a server")
{
    const Place place;
    place.directory.make("auth.json.lock");
    place.directory.make("settings.json.lock");
    for (const std::string name : {"auth.json", "settings.json"})
        place.age(-20, place.directory / (name + ".lock"));
    CHECK(is_locked_by_agent(place.fd, "auth.json"));
    CHECK_FALSE(is_locked_by_agent(place.fd, "settings.json"));
    place.age(-40, place.directory / "auth.json.lock");
    CHECK_FALSE(is_locked_by_agent(place.fd, "auth.json"));
}

TEST_CASE("a lock that its holder lets go stale while we wait is taken over")
{
    const Place place;
    fs::create_directory(place.lock);
    place.age(-9);
    const double waited = place.seconds_to_lock();
    CHECK(waited > 0.5);
    CHECK(waited < 5);
}

TEST_CASE("a lock that is kept fresh for longer than any holder needs is a limit, named")
{
    const Place place;
    fs::create_directory(place.lock);
    std::atomic<bool> done = false;
    std::thread holder([&] { // as one that hangs, but for its timer
        while (!done) {
            ::utimensat(AT_FDCWD, place.lock.c_str(), nullptr, 0);
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
    });
    std::thread listener([&] {
        while (!done)
            if (wait_for_input(place.channel.second, in_seconds(1))) static_cast<void>(receive_packet(place.channel.second, in_seconds(1)));
    });
    const Caught caught = failure_of([&] { const AgentLock lock(place.fd, "f.json", place.channel.first); });
    done = true;
    holder.join();
    listener.join();
    CHECK(caught.status == 75);
    CHECK(has(caught.text, "another session of yours keeps f.json locked (f.json.lock in its config directory)"));
    CHECK(fs::exists(place.lock)); // it is not ours
}

TEST_CASE("a directory in which nothing can be made is a failure of the system")
{
    const Place place;
    const UniqueFd file = open_path(place.directory.write("file", "x"));
    CHECK(errno_of([&] {
              const AgentLock lock(file, "f.json", place.channel.first);
              return 0;
          }) == ENOTDIR);
}

} // namespace agent_lock_test
