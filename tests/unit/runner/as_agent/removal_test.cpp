// Removing trees that an attacker filled: runner/as_agent/home.hpp
#include "runner/as_agent/home.hpp"

#include "common/base/channel.hpp"
#include "common/host/beneath.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/rearranged.hpp"

#include <sys/resource.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace removal_test {

TEST_CASE("removes files, links, trees and what is not there")
{
    const Place place;
    place.write("file", "x");
    place.link("link", place.directory / "outside");
    place.link("file_link", place.directory / "outside/canary");
    place.make("tree/a/b/c");
    place.write("tree/a/b/file", "x");
    place.link("tree/a/out", place.directory / "outside");
    place.link("tree/up", "../../outside");
    REQUIRE(::mkfifo((place / "tree/fifo").c_str(), 0600) == 0);
    for (const std::string name : {"file", "link", "file_link", "tree", "none"}) {
        CAPTURE(name);
        CHECK_NOTHROW(remove_beneath(place.top, name));
        CHECK_FALSE(fs::exists(fs::symlink_status(place / name)));
    }
    CHECK(fs::is_empty(place.top_path));
    CHECK(place.outside_is_unchanged());
}

TEST_CASE("empties a directory and leaves it there")
{
    const Place place;
    place.make("a/b/c");
    place.write("a/file", "x");
    place.write("kept", "x");
    place.link("a/link", place / "kept");
    const FdRef top = place.top;
    const UniqueFd directory = open_beneath(top, "a", O_RDONLY | O_DIRECTORY);
    remove_content_beneath(directory);
    CHECK(fs::is_empty(place / "a"));
    remove_content_beneath(directory);
    CHECK(fs::exists(place / "kept"));
}

TEST_CASE("removes nothing above")
{
    const Place place;
    const FdRef top = place.top;
    CHECK(errno_of([&] { remove_beneath(top, ".."); }) != 0);
    CHECK(errno_of([&] { remove_beneath(top, "../outside"); }) != 0);
    CHECK(place.outside_is_unchanged());
}

TEST_CASE("removes a tree whose directories were made unreadable and unwritable")
{
    const TemporaryDirectory directory;
    REQUIRE(::chmod(directory.path().c_str(), 0777) == 0);
    for (const mode_t mode : {0555U, 0111U, 0444U, 0000U}) {
        CAPTURE(mode);
        CHECK(as_somebody([&] {
                  const std::string top_path = directory.make("top" + std::to_string(mode));
                  fs::create_directories(top_path + "/tree/inner");
                  std::ofstream(top_path + "/tree/inner/file") << "x";
                  if (::chmod((top_path + "/tree/inner").c_str(), mode) != 0 || ::chmod((top_path + "/tree").c_str(), mode) != 0)
                      return std::string("set-up failed");
                  const UniqueFd top = UniqueFd::adopt(::open(top_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
                  remove_beneath(top, "tree");
                  return std::string(fs::is_empty(top_path) ? "removed" : "still there");
              }) == "removed");
    }
}

TEST_CASE("a tree of any depth and width is removed with few descriptors")
{
    const Place place;
    for (const int deep : {31, 32, 33, 5000}) {
        CAPTURE(deep);
        UniqueFd current = open_path(place.top_path, O_RDONLY | O_DIRECTORY);
        for (int depth = 0; depth < deep; ++depth) {
            REQUIRE(::mkdirat(current.get(), "d", 0700) == 0);
            if (depth % 40 == 0) {
                REQUIRE(::mkdirat(current.get(), "e", 0700) == 0);
                REQUIRE(::symlinkat(place.directory.path().c_str(), current.get(), "l") == 0);
            }
            current = UniqueFd::adopt(::openat(current.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            REQUIRE(current.is_open());
        }
        current.reset();
        const auto before = count_open_descriptors();
        rlimit limit{};
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
        const rlimit few{128, limit.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
        CHECK_NOTHROW(remove_content_beneath(place.top));
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
        CHECK(fs::is_empty(place.top_path));
        CHECK(count_open_descriptors() == before);
    }
    CHECK(place.outside_is_unchanged());
}

TEST_CASE("a directory that its owner closed is emptied when somebody else opened it" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory;
    const std::string top_path = directory.make("top/inner");
    REQUIRE((::chown(top_path.c_str(), 65534, 65534) == 0 && ::chmod(top_path.c_str(), 0000) == 0));
    std::ofstream(top_path + "/file") << "x";
    const UniqueFd top = open_path(top_path, O_RDONLY | O_DIRECTORY);
    CHECK(as_somebody([&] {
              remove_content_beneath(top);
              return std::string("emptied");
          }) == "emptied");
    CHECK(fs::is_empty(top_path));
}

TEST_CASE("what cannot be removed is told, and all else is removed" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory;
    REQUIRE(::chmod(directory.path().c_str(), 0777) == 0);
    // In a directory of somebody else's, which is not writable.
    const std::string top_path = directory.make("top");
    directory.make("top/foreign");
    directory.write("top/foreign/file", "x");
    REQUIRE((::chmod(top_path.c_str(), 0777) == 0 && ::chmod((top_path + "/foreign").c_str(), 0755) == 0));
    CHECK(as_somebody([&] {
              std::ofstream(top_path + "/mine") << "x";
              fs::create_directories(top_path + "/tree/a");
              const UniqueFd top = UniqueFd::adopt(::open(top_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
              try {
                  remove_content_beneath(top);
              } catch (const Failure &failure) {
                  return std::string(failure.what()) + (fs::exists(top_path + "/mine") || fs::exists(top_path + "/tree") ? ", kept" : "");
              }
              return std::string("no word");
          }) == "removing file: Permission denied");
}

TEST_CASE("a link swapped in while a tree is removed or made costs nothing outside")
{
    const Place place;
    const FdRef top = place.top;
    int rounds = 0;
    const Deadline end = Clock::now() + std::chrono::milliseconds(600);
    while (Clock::now() < end) {
        for (const std::string name : {"tree", "link"}) // either may be the link now, and this test must not follow it
            fs::remove_all(place / name);
        place.link("link", place.directory / "outside");
        place.make("tree/kept");
        place.write("tree/canary", "inside");
        const Swapper swapper(place.top, "tree", "link");
        // Either may fail, because the attacker is faster; neither may leave.
        static_cast<void>(failure_of([&] { return ensure_directory_beneath(top, "tree/new/deep"); }));
        static_cast<void>(failure_of([&] { remove_beneath(top, "tree"); }));
        ++rounds;
    }
    CHECK(rounds > 3);
    CHECK(place.outside_is_unchanged());
}

} // namespace removal_test
