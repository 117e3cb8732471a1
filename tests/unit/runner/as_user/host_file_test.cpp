// Opening what a user's config names, and nothing that acts or waits: runner/as_user/reader.hpp
#include "runner/as_user/reader.hpp"

#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <filesystem>

using namespace pi_agent;
using namespace pi_agent::test;

namespace host_file_test {

namespace {

struct Place {
    Place() : fd(open_path(directory.path(), O_RDONLY | O_DIRECTORY)), top(paths.follow(directory.path())) {}
    TemporaryDirectory directory;
    UniqueFd fd;
    UserPaths paths{AgentPlaces{}};
    UserPlacePtr top;
    std::string left_out;
};

} // namespace

TEST_CASE("a regular file is opened with its facts, a link to one too")
{
    Place place;
    place.directory.make("sub");
    place.directory.write("sub/file", "12345");
    place.directory.link("link", "sub/file");
    ::chmod((place.directory / "sub/file").c_str(), 04750);
    for (const std::string path : {"sub/file", "link"}) {
        const HostFile file = open_host_file(place.paths, place.top, path);
        REQUIRE(file.fd.is_open());
        CHECK(file.problem.empty());
        CHECK(file.facts.size == 5);
        CHECK(file.facts.inode == inode_of(file.fd));
        CHECK(file.facts.mode == 0750);
        CHECK((::fcntl(file.fd.get(), F_GETFL) & O_ACCMODE) == O_RDONLY);
        CHECK((::fcntl(file.fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
    }
}

TEST_CASE("what is no regular file of a real file system is named and not opened")
{
    Place place;
    REQUIRE(::mkfifo((place.directory / "fifo").c_str(), 0600) == 0);
    place.directory.make("directory");
    place.directory.link("null", "/dev/null");
    place.directory.link("loop", "loop");
    place.directory.link("dangling", "nowhere");
    place.directory.link("environ", "/proc/self/environ");
    struct Row {
        std::string path, problem;
    };
    for (const Row &row : {Row{"fifo", "not a regular file"},
                           {"directory", "not a regular file"},
                           {"null", "not a regular file"},
                           {"loop", "opening"},
                           {"dangling", "No such file"},
                           {"missing", "No such file"},
                           {"directory/missing", "No such file"},
                           {"environ", "the kernel makes that file"}}) {
        CAPTURE(row.path);
        const HostFile file = open_host_file(place.paths, place.top, row.path);
        CHECK_FALSE(file.fd.is_open());
        CHECK_MESSAGE(has(file.problem, row.problem), file.problem);
    }
}

TEST_CASE("a source is a directory, missing, or refused")
{
    Place place;
    place.directory.link("link", ".");
    place.directory.write("file", "x");
    place.directory.link("dangling", "nowhere/below");
    place.directory.link("loop", "loop");
    CHECK(open_source_directory(place.paths, place.directory.path(), "it", place.left_out) != nullptr);
    CHECK(open_source_directory(place.paths, place.directory / "link", "it", place.left_out) != nullptr);
    for (const std::string missing : {"missing", "missing/below"})
        CHECK_FALSE(open_source_directory(place.paths, place.directory / missing, "it", place.left_out) != nullptr);
    for (const std::string dangling : {"dangling", "dangling/below", "link/dangling/x/y"}) {
        const Caught caught =
            failure_of([&] { return open_source_directory(place.paths, place.directory / dangling, "it", place.left_out); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, "it cannot be used: " + (place.directory / dangling) + " does not exist: "));
        CHECK(has(caught.text, "dangling is a symlink to nothing"));
    }
    for (const std::string bad : {"file", "loop", "file/below"}) {
        const Caught caught = failure_of([&] { return open_source_directory(place.paths, place.directory / bad, "it", place.left_out); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, "it cannot be used: opening " + (place.directory / bad)));
    }
}

TEST_CASE("a document is a readable file, missing, or refused by its place")
{
    Place place;
    place.directory.write("good.json", "{}");
    place.directory.link("dangling.json", "nowhere");
    place.directory.make("directory.json");
    CHECK(open_document(place.paths, place.top, "good.json", "p", place.left_out).fd.is_open());
    CHECK_FALSE(open_document(place.paths, place.top, "missing.json", "p", place.left_out).fd.is_open());
    for (const std::string name : {"dangling.json", "directory.json"}) {
        const Caught caught = failure_of([&] { return open_document(place.paths, place.top, name, "/x/\x1b" + name, place.left_out); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, "/x/\\x1b" + name + " is not a file that you can read ("));
        CHECK(has(caught.text, "correct it; nothing was changed"));
    }
}

TEST_CASE("files of the kernel's are known, those of the disk are not")
{
    Place place;
    for (const std::string path : {"/proc/self/status", "/proc", "/proc/self/fd"})
        CHECK_MESSAGE(is_kernels(open_path(path, O_PATH)), path);
    CHECK_FALSE(is_kernels(place.fd));
    CHECK_FALSE(is_kernels(open_path(place.directory.write("f", ""), O_PATH)));
}

TEST_CASE("a fresh lock of the agent on the host is waited for, but not for long")
{
    Place place;
    const auto waited = [&](int patience) {
        const auto before = std::chrono::steady_clock::now();
        wait_for_lock(place.fd, "settings.json", patience);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    };
    CHECK(waited(5000) < 1);
    place.directory.make("settings.json.lock");
    const double whole = waited(200);
    CHECK(whole > 0.15);
    CHECK(whole < 3);
    const std::array<timespec, 2> old{timespec{1, 0}, timespec{1, 0}};
    REQUIRE(::utimensat(AT_FDCWD, (place.directory / "settings.json.lock").c_str(), old.data(), 0) == 0);
    CHECK(waited(5000) < 1);
    CHECK(std::filesystem::exists(place.directory / "settings.json.lock")); // on the host nobody takes it away
}

} // namespace host_file_test
