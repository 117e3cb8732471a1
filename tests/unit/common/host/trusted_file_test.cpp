// common/host/beneath.hpp
#include "common/host/beneath.hpp"

#include "common/base/error.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

using namespace pi_agent;
using pi_agent::test::not_root;
using pi_agent::test::TemporaryDirectory;

namespace trusted_file_test {

namespace {

std::string refusal_of(const std::string &path)
{
    try {
        static_cast<void>(read_trusted_file(path, 100, "policy"));
    } catch (const Failure &failure) {
        CHECK(failure.status() == ExitStatus::configuration);
        return failure.what();
    }
    return "";
}

} // namespace

TEST_CASE("reads a file of the system")
{
    CHECK(read_trusted_file("/etc/passwd", 1U << 20U, "user database").find("root:") != std::string::npos);
    CHECK(open_trusted("/usr", O_PATH | O_DIRECTORY, "directory").is_open());
}

TEST_CASE("what is absent is a failure of the system, with its errno")
{
    try {
        static_cast<void>(read_trusted_file("/usr/no-such-file", 100, "policy"));
        FAIL("expected a failure");
    } catch (const SystemFailure &failure) {
        CHECK(failure.error_number() == ENOENT);
    }
    CHECK(list_trusted_directory("/usr/no-such-directory", ".yaml", "directory").empty());
    CHECK_THROWS_AS(static_cast<void>(read_trusted_file("etc/passwd", 100, "policy")), SystemFailure);
    CHECK_THROWS_AS(static_cast<void>(open_trusted("/etc/passwd", O_RDONLY | O_DIRECTORY, "directory")), SystemFailure);
}

TEST_CASE("names the first component that others can change")
{
    const TemporaryDirectory directory;
    const auto file = directory.write("policy.yaml", "x");
    CHECK(refusal_of(file) == "the policy " + file +
                                  " cannot be trusted; /tmp is writable by others than root (mode 1777); as the administrator, "
                                  "examine it, then move it to where only root can write");
}

TEST_CASE("refuses a file, a directory or a link of somebody else, and modes that let others write" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory("/run");
    directory.make("d");
    const auto file = directory.write("d/policy.yaml", "x");
    CHECK(read_trusted_file(file, 100, "policy") == "x");

    REQUIRE(::chmod(file.c_str(), 0664) == 0);
    CHECK(refusal_of(file).find("cannot be trusted: it is writable by others than root (mode 0664)") != std::string::npos);
    REQUIRE(::chmod(file.c_str(), 0644) == 0);
    REQUIRE(::chown(file.c_str(), 12345, 0) == 0);
    CHECK(refusal_of(file).find("it belongs to uid 12345, not to root; as the administrator, examine it, then move it") !=
          std::string::npos);
    REQUIRE(::chown(file.c_str(), 0, 0) == 0);

    REQUIRE(::chmod((directory / "d").c_str(), 0757) == 0);
    CHECK(refusal_of(file).find("/d is writable by others") != std::string::npos);
    REQUIRE(::chmod((directory / "d").c_str(), 01775) == 0);
    CHECK(refusal_of(file).find("/d is writable by others") != std::string::npos);
    REQUIRE(::chmod((directory / "d").c_str(), 0755) == 0);
    REQUIRE(::chown((directory / "d").c_str(), 12345, 0) == 0);
    CHECK(refusal_of(file).find("/d belongs to uid 12345") != std::string::npos);
    REQUIRE(::chown((directory / "d").c_str(), 0, 0) == 0);

    const auto link = directory.link("link", "d/policy.yaml");
    CHECK(read_trusted_file(link, 100, "policy") == "x");
    REQUIRE(::lchown(link.c_str(), 12345, 0) == 0);
    CHECK(refusal_of(link).find("/link cannot be trusted: it belongs to uid 12345") != std::string::npos);
}

TEST_CASE("follows root's link only to what is trusted as well" * doctest::skip(not_root()))
{
    const TemporaryDirectory fixed("/run");
    const TemporaryDirectory open;
    open.write("policy.yaml", "x");
    const auto link = fixed.link("policy.yaml", open / "policy.yaml");
    CHECK(refusal_of(link).find("/tmp is writable by others than root") != std::string::npos);
}

TEST_CASE("a link that leads nowhere is not absent, a name that is missing behind a link is" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory("/run");
    directory.make("d");
    directory.link("nowhere", "gone/below");
    directory.link("to-nowhere", "nowhere");
    directory.link("to-d", "d");
    for (const std::string name : {"nowhere", "to-nowhere", "nowhere/policy.yaml", "to-nowhere/more/policy.yaml"}) {
        CHECK(refusal_of(directory / name).find("nowhere leads nowhere; as the administrator") != std::string::npos);
        CHECK_THROWS_AS(static_cast<void>(list_trusted_directory(directory / name, ".yaml", "directory")), Failure);
        CHECK_THROWS_AS(static_cast<void>(if_there([&] { return open_trusted(directory / name, O_PATH, "file"); })), Failure);
    }
    for (const std::string name : {"gone", "to-d/gone", "d/gone/below"}) {
        CHECK(list_trusted_directory(directory / name, ".yaml", "directory").empty());
        CHECK_FALSE(if_there([&] { return open_trusted(directory / name, O_PATH, "file"); }).is_open());
    }
}

TEST_CASE("a FIFO, a directory or a file beyond the limit is no policy" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory("/run");
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
    CHECK(refusal_of(directory / "fifo").find("is not a regular file") != std::string::npos);
    CHECK(refusal_of(directory.make("directory")).find("is not a regular file") != std::string::npos);
    CHECK(refusal_of(directory.write("large", std::string(101, 'x'))).find("is larger than 100 bytes") != std::string::npos);
    CHECK(refusal_of(directory.write("fits", std::string(100, 'x'))).empty());
}

TEST_CASE("lists by suffix in bytewise order and leaves hidden names out" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory("/run");
    for (const auto *name : {"b.yaml", "a.yaml", "B.yaml", ".c.yaml", "d.yml", ".yaml", "10.yaml"})
        directory.write(name, "");
    const std::vector<std::string> expected = {"10.yaml", "B.yaml", "a.yaml", "b.yaml"};
    CHECK(list_trusted_directory(directory.path(), ".yaml", "directory") == expected);
}

} // namespace trusted_file_test
