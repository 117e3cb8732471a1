// The copy of agents' homes: admin/state/state.hpp
#include "admin/state/state.hpp"

#include "support/accounts.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/policy_text.hpp"
#include "support/skipped.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <functional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace state_move_test {

using namespace pi_agent;
using namespace pi_agent::test;

namespace {

// A home as agents make them, and an empty place beside it.
struct Trees {
    TemporaryDirectory directory{"/srv"};
    AsRoot root = AsRoot::claim();
    Account agent = agent_account();
    std::string from = directory.make("from");
    std::string to = directory.make("to");

    [[nodiscard]] UniqueFd open(const std::string &path) const { return open_or_throw("opening", path, O_RDONLY | O_DIRECTORY); }
    void copy() const { copy_tree(root, open(from), open(to), from); }
    void compare() const { require_same_tree(open(from), open(to), from); }
};

struct stat facts_of(const std::string &path)
{
    struct stat facts {};
    REQUIRE(::lstat(path.c_str(), &facts) == 0);
    return facts;
}

} // namespace

TEST_CASE("a copy has owners, modes, times, links, holes and attributes of what it copies" * doctest::skip(not_root()))
{
    const Trees trees;
    trees.directory.make("from/a/b");
    trees.directory.write("from/a/file", "text");
    trees.directory.link("from/a/link", "/etc/passwd");
    trees.directory.write("from/a/tight", "");
    REQUIRE(::link((trees.from + "/a/file").c_str(), (trees.from + "/a/b/same").c_str()) == 0);
    REQUIRE(::mkfifo((trees.from + "/fifo").c_str(), 0640) == 0);
    REQUIRE(::truncate((trees.from + "/a/tight").c_str(), off_t{1} << 40) == 0);
    for (const char *path : {"/a", "/a/file", "/a/link", "/fifo", "/a/b"})
        give(trees.from + path, trees.agent);
    set_mode(trees.from + "/a/file", 02751);
    set_mode(trees.from + "/a", 0700);
    const bool has_attributes = ::setxattr((trees.from + "/a/file").c_str(), "user.kept", "x", 1, 0) == 0;
    const timespec times[] = {{1, 0}, {1'000'000, 0}};
    REQUIRE(::utimensat(AT_FDCWD, (trees.from + "/a").c_str(), times, 0) == 0);

    trees.copy();
    CHECK_NOTHROW(trees.compare());
    const auto file = facts_of(trees.to + "/a/file");
    CHECK(file.st_uid == trees.agent.uid.value());
    CHECK((file.st_mode & 07777U) == 02751);
    CHECK(file.st_ino == facts_of(trees.to + "/a/b/same").st_ino);
    CHECK(facts_of(trees.to + "/a").st_mtim.tv_sec == 1'000'000);
    CHECK(S_ISLNK(facts_of(trees.to + "/a/link").st_mode));
    CHECK(S_ISFIFO(facts_of(trees.to + "/fifo").st_mode));
    CHECK(facts_of(trees.to + "/a/tight").st_size == off_t{1} << 40);
    CHECK(facts_of(trees.to + "/a/tight").st_blocks < 100);
    if (has_attributes) CHECK(::getxattr((trees.to + "/a/file").c_str(), "user.kept", nullptr, 0) == 1);
}

TEST_CASE("capabilities of a file are not copied, for they would be root's gift" * doctest::skip(not_root()))
{
    const Trees trees;
    trees.directory.write("from/program", "x");
    // cap_net_raw+ep, version 2 (capabilities(7))
    const unsigned char capability[] = {1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (::setxattr((trees.from + "/program").c_str(), "security.capability", capability, sizeof capability, 0) != 0)
        return skipped("this file system keeps no capabilities of files");
    trees.copy();
    CHECK(::getxattr((trees.to + "/program").c_str(), "security.capability", nullptr, 0) < 0);
}

TEST_CASE("what cannot be an agent's, or is too deep, is told by its path and copied by nobody" * doctest::skip(not_root()))
{
    const Trees trees;
    std::string path = trees.from;
    for (int depth = 0; depth < 300; ++depth) {
        path += "/d";
        REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    }
    const Caught deep = failure_of([&] {
        trees.copy();
        return 0;
    });
    CHECK(has(deep.text, "nests too deep"));
    const Trees others;
    if (::mknod((others.from + "/null").c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) return skipped("this process cannot make devices");
    CHECK(has(failure_of([&] {
                  others.copy();
                  return 0;
              }).text,
              others.from + "/null is a device"));
}

TEST_CASE("a tree as deep as one may be is copied and compared with the descriptors that a process has" * doctest::skip(not_root()))
{
    const Trees trees;
    std::string path = trees.from;
    for (int depth = 0; depth < 250; ++depth) {
        path += "/d";
        REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    }
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit usual{1024, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
    CHECK_NOTHROW(trees.copy());
    CHECK_NOTHROW(trees.compare());
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("a file with a second name whose path is too long is refused with a remedy" * doctest::skip(not_root()))
{
    const Trees trees;
    UniqueFd at = UniqueFd::adopt(::open(trees.from.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::string name(250, 'd');
    for (int depth = 0; depth < 17; ++depth) {
        REQUIRE(::mkdirat(at.get(), name.c_str(), 0700) == 0);
        at = UniqueFd::adopt(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    UniqueFd::adopt(::openat(at.get(), "one", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).reset();
    REQUIRE(::linkat(at.get(), "one", at.get(), "other", 0) == 0);
    CHECK(has(failure_of([&] {
                  trees.copy();
                  return 0;
              }).text,
              "is another name of a file whose path is too long; remove it, or empty that home (pi-agentctl state reset)"));
}

TEST_CASE("each difference is found" * doctest::skip(not_root()))
{
    const std::vector<std::function<void(const Trees &)>> changes = {
        [](const Trees &trees) { trees.directory.write("to/a/file", "next"); },
        [](const Trees &trees) { trees.directory.write("to/a/more", ""); },
        [](const Trees &trees) { std::filesystem::remove(trees.to + "/a/file"); },
        [](const Trees &trees) { set_mode(trees.to + "/a", 0755); },
        [](const Trees &trees) { give(trees.to + "/a/link", user_account()); },
        [](const Trees &trees) {
            std::filesystem::remove(trees.to + "/a/link");
            trees.directory.link("to/a/link", "/etc/shadow");
        },
    };
    for (const auto &change : changes) {
        const Trees trees;
        trees.directory.make("from/a");
        trees.directory.write("from/a/file", "text");
        trees.directory.link("from/a/link", "/etc/passwd");
        set_mode(trees.from + "/a", 0700);
        trees.copy();
        change(trees);
        CHECK(has(failure_of([&] {
                      trees.compare();
                      return 0;
                  }).text,
                  "is not the same at the new place"));
    }
}

TEST_CASE("the state is at a place that only root can change, and that no link leads to" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory("/srv");
    set_mode(directory.path(), 0755);
    const auto problem_of = [](const std::string &path) {
        Problems problems;
        check_state_place(parse("version: 1\nagent: {state_dir: " + path + "}\nusers: {alice: {roots: [/opt/a]}}\n"), nullptr, problems);
        return problems.empty() ? std::string() : problems.all().front().problem;
    };
    CHECK(problem_of(directory / "agents").empty());
    CHECK(has(problem_of(directory / "missing/agents"), "does not exist"));
    directory.link("link", directory.path());
    CHECK(has(problem_of(directory / "link/agents"), "is a symlink, or lies behind one"));
    directory.write("file", "");
    CHECK(has(problem_of(directory / "file"), "is not a directory"));
    set_mode(directory.path(), 0777);
    CHECK(has(problem_of(directory / "agents"), "writable by others than root"));
}

} // namespace state_move_test
