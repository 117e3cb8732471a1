// File operations that an attacker who rearranges the directory cannot lead out of it: common/host/beneath.hpp
#include "common/host/beneath.hpp"

#include "common/base/channel.hpp"
#include "support/failure.hpp"
#include "support/rearranged.hpp"

#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace beneath_test {

TEST_CASE("splits a path at its last slash")
{
    using Parts = std::pair<std::string, std::string>;
    CHECK(split_last("c") == Parts("", "c"));
    CHECK(split_last("a/b/c") == Parts("a/b", "c"));
    CHECK(split_last("") == Parts("", ""));
    CHECK(split_last("a/") == Parts("a", ""));
}

TEST_CASE("opens what lies beneath, and the top itself by the empty path")
{
    const Place place;
    place.make("a/b");
    place.write("a/b/file", "x");
    CHECK(inode_of(open_beneath(place.top, "", O_RDONLY | O_DIRECTORY)) == inode_of(place.top));
    const UniqueFd file = open_beneath(place.top, "a/b/file", O_RDONLY);
    CHECK(file.is_open());
    CHECK((::fcntl(file.get(), F_GETFD) & FD_CLOEXEC) != 0);
    const FdRef top = place.top;
    CHECK(errno_of([&] { return open_beneath(top, "a/none", O_RDONLY); }) == ENOENT);
    CHECK(errno_of([&] { return open_beneath(top, "a/b/file", O_RDONLY | O_DIRECTORY); }) == ENOTDIR);
    CHECK_THROWS_WITH_AS(names_in(file, "a/b/file"), doctest::Contains("listing a/b/file"), SystemFailure);
}

TEST_CASE("follows no link and reaches nothing above")
{
    const Place place;
    place.make("a");
    place.write("a/file", "x");
    const std::string outside = place.directory / "outside";
    place.link("absolute", outside);
    place.link("relative", "../outside");
    place.link("inner", "a");
    place.link("a/last", outside + "/canary");
    place.link("a/inner_last", "file");
    place.link("magic", "/proc/self/cwd");
    place.link("root", "/");
    struct Row {
        std::string path;
        int error;
    };
    for (const Row &row : {Row{"absolute/canary", ELOOP},
                           {"relative/canary", ELOOP},
                           {"inner/file", ELOOP},
                           {"a/last", ELOOP},
                           {"a/inner_last", ELOOP},
                           {"magic/canary", ELOOP},
                           {"root/etc/passwd", ELOOP},
                           {"absolute", ELOOP},
                           {"..", EXDEV},
                           {"../outside/canary", EXDEV},
                           {"a/../../outside/canary", EXDEV},
                           {"/etc/passwd", EXDEV},
                           {"//etc/passwd", EXDEV},
                           {"/", EXDEV}}) {
        CAPTURE(row.path);
        const FdRef top = place.top;
        CHECK(errno_of([&] { return open_beneath(top, row.path, O_RDONLY); }) == row.error);
        CHECK(errno_of([&] { return open_beneath(top, row.path, O_WRONLY | O_TRUNC); }) == row.error);
    }
    CHECK(place.outside_is_unchanged());
}

TEST_CASE("finding tells by errno why there is nothing, and throws nothing")
{
    const Place place;
    place.make("a");
    place.write("a/file", "x");
    place.link("a/link", "file");
    const FdRef top = place.top;
    CHECK(find_beneath(top, "a/file", O_RDONLY).is_open());
    CHECK(find_beneath(top, "", O_RDONLY | O_DIRECTORY).is_open());
    const auto problem = [&](const std::string &path, int flags) {
        errno = 0;
        return find_beneath(top, path, flags).is_open() ? 0 : errno;
    };
    CHECK(problem("a/none", O_RDONLY) == ENOENT);
    CHECK(problem("a/link", O_RDONLY) == ELOOP);
    CHECK(problem("a/file", O_PATH | O_DIRECTORY) == ENOTDIR);
    CHECK(problem("..", O_RDONLY) == EXDEV);
    CHECK(problem("/etc", O_RDONLY) == EXDEV);
}

TEST_CASE("a path descriptor of a link is the link's own, and leads nowhere")
{
    const Place place;
    place.link("link", place.directory / "outside");
    const UniqueFd fd = open_beneath(place.top, "link", O_PATH);
    struct stat facts {};
    REQUIRE(::fstat(fd.get(), &facts) == 0);
    CHECK(S_ISLNK(facts.st_mode));
    CHECK(::openat(fd.get(), "canary", O_RDONLY) < 0);
    const FdRef top = place.top;
    CHECK(errno_of([&] { return open_beneath(top, "link/canary", O_PATH); }) == ELOOP);
    CHECK(errno_of([&] { return open_beneath(top, "..", O_PATH); }) == EXDEV);
    CHECK(errno_of([&] { return open_beneath(top, "/", O_PATH); }) == EXDEV);
}

TEST_CASE("makes every component a private directory and keeps those that are there")
{
    const Place place;
    place.make("a");
    place.write("a/kept", "x");
    const UniqueFd made = ensure_directory_beneath(place.top, "a/b/c");
    CHECK(inode_of(made) == inode_of(open_path(place / "a/b/c")));
    CHECK(mode_of(place / "a/b") == 0700);
    CHECK(mode_of(place / "a/b/c") == 0700);
    CHECK(fs::exists(place / "a/kept"));
    CHECK(inode_of(ensure_directory_beneath(place.top, "a/b/c")) == inode_of(made));
    CHECK(inode_of(ensure_directory_beneath(place.top, "")) == inode_of(place.top));
}

TEST_CASE("replaces what stands in a directory's place, and never goes through it")
{
    const auto plant = [](const Place &place, const std::string &kind, const std::string &at) {
        if (kind == "file") place.write(at, "x");
        if (kind == "link out") place.link(at, place.directory / "outside");
        if (kind == "link to a file") place.link(at, place.directory / "outside/canary");
        if (kind == "dangling link") place.link(at, place.directory / "outside/made");
        if (kind == "link to itself") place.link(at, fs::path(at).filename());
        if (kind == "FIFO") REQUIRE(::mkfifo((place / at).c_str(), 0600) == 0);
    };
    for (const std::string kind : {"file", "link out", "link to a file", "dangling link", "link to itself", "FIFO"}) {
        for (const std::string at : {"a", "a/b", "a/b/c"}) {
            CAPTURE(kind);
            CAPTURE(at);
            const Place place;
            if (fs::path(at).has_parent_path()) place.make(fs::path(at).parent_path());
            plant(place, kind, at);
            const UniqueFd made = ensure_directory_beneath(place.top, "a/b/c");
            CHECK(fs::symlink_status(place / at).type() == fs::file_type::directory);
            CHECK(inode_of(made) == inode_of(open_path(place / "a/b/c", O_DIRECTORY | O_NOFOLLOW)));
            CHECK(place.outside_is_unchanged());
        }
    }
}

TEST_CASE("makes nothing above the top or in a path that is not plain")
{
    const Place place;
    const FdRef top = place.top;
    for (const std::string path : {"..", "../outside/new", "a/../../outside/new", "/etc/pi-agent-unit-test", "a//b"}) {
        CAPTURE(path);
        CHECK(errno_of([&] { return ensure_directory_beneath(top, path); }) != 0);
    }
    CHECK_FALSE(fs::exists("/etc/pi-agent-unit-test"));
    CHECK(place.outside_is_unchanged());
}

TEST_CASE("a directory that was made unreadable is made usable again")
{
    const TemporaryDirectory directory;
    REQUIRE(::chmod(directory.path().c_str(), 0777) == 0);
    CHECK(as_somebody([&] {
              const std::string top_path = directory.make("top");
              fs::create_directory(top_path + "/closed");
              if (::chmod((top_path + "/closed").c_str(), 0) != 0) return std::string("set-up failed");
              const UniqueFd top = UniqueFd::adopt(::open(top_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
              static_cast<void>(ensure_directory_beneath(top, "closed/new"));
              return std::string(fs::is_directory(top_path + "/closed/new") ? "made" : "not made");
          }) == "made");
}

TEST_CASE("a directory that was made unwritable is made usable again, and no other right is taken from it")
{
    const TemporaryDirectory directory;
    REQUIRE(::chmod(directory.path().c_str(), 0777) == 0);
    CHECK(as_somebody([&] {
              const std::string top_path = directory.make("top");
              for (const std::string name : {"closed", "open"})
                  fs::create_directory(top_path + "/" + name);
              if (::chmod((top_path + "/closed").c_str(), 0555) != 0 || ::chmod((top_path + "/open").c_str(), 0755) != 0)
                  return std::string("set-up failed");
              const UniqueFd top = UniqueFd::adopt(::open(top_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
              static_cast<void>(ensure_directory_beneath(top, "closed/new"));
              static_cast<void>(ensure_directory_beneath(top, "open/new"));
              return std::to_string(mode_of(top_path + "/closed")) + " " + std::to_string(mode_of(top_path + "/open"));
          }) == std::to_string(0700) + " " + std::to_string(0755));
}

TEST_CASE("a directory of one's own is found through closed ones, and none is made or replaced on the way")
{
    const TemporaryDirectory directory;
    REQUIRE(::chmod(directory.path().c_str(), 0777) == 0);
    CHECK(as_somebody([&] {
              const std::string top_path = directory.make("top");
              fs::create_directories(top_path + "/closed/inner/last");
              fs::create_symlink("closed", top_path + "/link");
              for (const std::string name : {"/closed/inner/last", "/closed/inner", "/closed"})
                  if (::chmod((top_path + name).c_str(), 0000) != 0) return std::string("set-up failed");
              const UniqueFd top = UniqueFd::adopt(::open(top_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
              const auto problem = [&](const std::string &path) {
                  return find_own_directory_beneath(top, path).is_open() ? std::string("found") : std::to_string(errno);
              };
              std::string answer = problem("link/inner");
              answer += " " + problem("closed/inner/last");
              answer += " " + std::to_string(mode_of(top_path + "/closed/inner"));
              answer += " " + problem("closed/none");
              return answer + " " + problem("closed/none/below");
          }) == std::to_string(ENOTDIR) + " found " + std::to_string(0700) + " " + std::to_string(ENOENT) + " " + std::to_string(ENOENT));
}

TEST_CASE("a link swapped in while it works leads nobody out")
{
    const Place place;
    place.make("here/kept");
    place.write("here/canary", "inside");
    place.link("swapped", place.directory / "outside");
    const ino_t outside = inode_of(open_path(place.directory / "outside/canary"));
    const FdRef top = place.top;
    int opened = 0;
    {
        const Swapper swapper(place.top, "here", "swapped");
        const Deadline end = Clock::now() + std::chrono::milliseconds(300);
        while (Clock::now() < end) {
            try {
                const UniqueFd file = open_beneath(top, "here/canary", O_RDONLY);
                ++opened;
                if (inode_of(file) == outside) FAIL("went through the link");
            } catch (const SystemFailure &failure) {
                CHECK(failure.error_number() == ELOOP);
            }
        }
    }
    CHECK(opened > 0); // else the race was never run
    CHECK(place.outside_is_unchanged());
}

} // namespace beneath_test
