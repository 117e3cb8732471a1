// Looking at a tree without leaving it: wrapper/aftermath.hpp
#include "wrapper/aftermath.hpp"

#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace shown_tree_test {

namespace {

Budget plenty(std::size_t entries = 1000)
{
    return {entries, in_seconds(60), [] { return false; }};
}

} // namespace

TEST_CASE("a link within the tree is followed, one that leaves it is not")
{
    const TemporaryDirectory directory;
    directory.make("tree/inner");
    directory.write("outside", "secret");
    directory.write("tree/inner/file", "text");
    directory.link("tree/in", "inner/file");
    directory.link("tree/out", "../outside");
    directory.link("tree/absolute", directory / "tree/inner/file");
    directory.link("tree/through", "../tree/inner/file");
    Budget budget = plenty();
    const auto tree = ShownTree::open(directory / "tree", budget);
    REQUIRE(tree);
    CHECK(tree->read("in", 100) == "text");
    for (const char *path : {"out", "absolute", "through", "../outside", "nothing"}) {
        CAPTURE(path);
        CHECK_FALSE(tree->read(path, 100));
        CHECK_FALSE(tree->look(path, Links::follow));
    }
    CHECK(tree->link_target("out") == "../outside");
}

TEST_CASE("only regular files are read, and no more of them than asked for")
{
    const TemporaryDirectory directory;
    REQUIRE(mkfifo((directory / "pipe").c_str(), 0600) == 0);
    directory.make("directory");
    directory.write("long", std::string(1000, 'x'));
    directory.link("to-pipe", "pipe");
    Budget budget = plenty();
    const auto tree = ShownTree::open(directory.path(), budget);
    for (const char *path : {"pipe", "directory", "to-pipe"})
        CHECK_FALSE(tree->read(path, 100));
    CHECK(tree->read("long", 100)->size() == 100);
    CHECK(tree->read("long", 2000)->size() == 1000);
    CHECK(tree->list("pipe", Links::follow).found == Listing::Found::nothing);
}

TEST_CASE("a budget that is spent ends a listing, and stays spent")
{
    const TemporaryDirectory directory;
    for (int index = 0; index < 20; ++index)
        directory.write(std::to_string(index), "");
    Budget budget = plenty(10);
    const auto tree = ShownTree::open(directory.path(), budget);
    CHECK(tree->list("", Links::refuse).entries.size() <= 10);
    CHECK(budget.is_spent());
    CHECK(tree->list("", Links::refuse).entries.empty());
}

TEST_CASE("time and a cancelled look are noticed")
{
    Budget late(1000, Clock::now(), [] { return false; });
    late.take_one();
    CHECK(late.is_spent());
    Budget cancelled(1000, in_seconds(60), [] { return true; });
    cancelled.take_one();
    CHECK(cancelled.is_spent());
}

TEST_CASE("a path is beneath the root by component")
{
    const TemporaryDirectory directory;
    Budget budget = plenty();
    const auto tree = ShownTree::open(directory.path(), budget);
    CHECK(tree->below(directory.path()) == "");
    CHECK(tree->below(directory / "a/b") == "a/b");
    CHECK_FALSE(tree->below(directory.path() + "-evil/a"));
    CHECK_FALSE(tree->below("/"));
    CHECK(normal_path("/a/./b/../c//d/") == "/a/c/d");
}

} // namespace shown_tree_test
