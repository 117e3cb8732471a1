// Git's links between a repository and its data: runner/as_user/project.hpp
#include "runner/as_user/project.hpp"

#include "support/descriptors.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace repository_test {

namespace {

UniqueFd directory_fd(const std::string &path)
{
    return open_path(path, O_PATH | O_DIRECTORY);
}

} // namespace

TEST_CASE("the nearest directory with a .git is the repository, whatever .git is")
{
    TemporaryDirectory place;
    place.make("a/b/c");
    place.make("a/.git");
    CHECK(inode_of(find_repository(directory_fd(place / "a/b/c")).top) == inode_of(directory_fd(place / "a")));
    place.write("a/b/.git", "no link of git's");
    const auto found = find_repository(directory_fd(place / "a/b/c"));
    CHECK(inode_of(found.top) == inode_of(directory_fd(place / "a/b")));
    CHECK(found.elsewhere.empty());
}

TEST_CASE("a submodule's data is believed where it names the submodule")
{
    TemporaryDirectory place;
    place.make("super/.git/modules/sub");
    place.make("super/sub");
    place.write("super/sub/.git", "gitdir: ../.git/modules/sub\n");
    place.write("super/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
    for (const char *name : {"objects", "refs"})
        place.make(std::string("super/.git/modules/sub/") + name);
    place.write("super/.git/modules/sub/HEAD", "ref: refs/heads/main\n");
    auto found = find_repository(directory_fd(place / "super/sub"));
    REQUIRE(found.elsewhere.size() == 1);
    CHECK(found.elsewhere[0].problem.empty());
    CHECK(inode_of(found.elsewhere[0].directory) == inode_of(directory_fd(place / "super/.git/modules/sub")));
    place.write("super/.git/modules/sub/config", "[core]\n\tworktree = ../../../other\n");
    CHECK_FALSE(find_repository(directory_fd(place / "super/sub")).elsewhere[0].problem.empty());
}

TEST_CASE("a .git that is no regular file is not waited for")
{
    TemporaryDirectory place;
    place.make("a");
    REQUIRE(::mkfifo((place / "a/.git").c_str(), 0600) == 0);
    CHECK(find_repository(directory_fd(place / "a")).elsewhere.empty());
}

} // namespace repository_test
