// Which arguments name files: runner/plan/host_view.hpp
#include "runner/plan/host_view.hpp"

#include <climits>
#include <doctest/doctest.h>

using namespace pi_agent;

namespace file_arguments_test {

namespace {

using Texts = std::vector<std::string>;

constexpr const char *kinds[] = {"file", "tree", "text", "written", "place"};

// "index:kind path" of each.
Texts found(const Texts &arguments)
{
    Texts texts;
    for (const auto &file : find_named_files(arguments, "/home/alice/projects/demo", "/home/alice"))
        texts.push_back(std::to_string(file.argument) + ":" + kinds[static_cast<int>(file.as)] + " " + file.path);
    return texts;
}

} // namespace

TEST_CASE("files, directories, texts and what the agent goes on writing are told apart by what stands before them")
{
    CHECK(found({"-p", "@notes.txt", "hello", "@/tmp/p.png"}) == Texts{"1:file /home/alice/projects/demo/notes.txt", "3:file /tmp/p.png"});
    CHECK(found({"-e", "/x/e.ts", "--skill", "/s", "--theme", "t"}) ==
          Texts{"1:tree /x/e.ts", "3:tree /s", "5:tree /home/alice/projects/demo/t"});
    CHECK(found({"--append-system-prompt", "/r.md", "--session", "/s.jsonl", "--fork", "/f.jsonl"}) ==
          Texts{"1:text /r.md", "3:written /s.jsonl", "5:file /f.jsonl"});
    CHECK(found({"--session-dir", "~/kept", "--session-dir", "kept"}) ==
          Texts{"1:place /home/alice/kept", "3:place /home/alice/projects/demo/kept"});
}

TEST_CASE("a path is read as the agent reads it: by its text, and the sign for the home is the user's")
{
    CHECK(found({"@~/a", "@~", "@../../b//c/.", "@/../../d", "-e", "~/e"}) ==
          Texts{"0:file /home/alice/a", "1:file /home/alice", "2:file /home/alice/b/c", "3:file /d", "5:tree /home/alice/e"});
    CHECK(found({"@~bob/a", "--system-prompt", "~/a"}) ==
          Texts{"0:file /home/alice/projects/demo/~bob/a", "2:text /home/alice/projects/demo/~/a"});
    CHECK(found({"@/a\nb \x1b[1m"}) == Texts{"0:file /a\nb \x1b[1m"});
}

TEST_CASE("values of other options, commands of the agent and what cannot be a path name no files")
{
    CHECK(found({"-n", "@/a", "--model", "@/b"}).empty());
    CHECK(found({"install", "@/a", "-e", "/b"}).empty());
    CHECK(found({"-e"}).empty());
    CHECK(found({"@", "me@example.org", "plain"}).empty());
    CHECK(found({"@/" + std::string(PATH_MAX, 'x')}).empty());
    CHECK(found({"@/"}).empty());
    CHECK(found({}).empty());
}

TEST_CASE("after -- every argument is a prompt or a file")
{
    CHECK(found({"--", "-e", "/a", "@/b", "--", "@/c"}) == Texts{"3:file /b", "5:file /c"});
}

TEST_CASE("a copy keeps the name of its file, and takes its place in the argument alone")
{
    Texts arguments = {"@~/d/a b.txt", "-e", "/x/e.ts"};
    const auto files = find_named_files(arguments, "/p", "/home/alice");
    REQUIRE(files.size() == 2);
    CHECK(place_of_copy(1, files[0]) == "/run/pi-agent/named/1/a b.txt");
    rename_argument(arguments, files[0], place_of_copy(1, files[0]));
    rename_argument(arguments, files[1], place_of_copy(2, files[1]));
    CHECK(arguments == Texts{"@/run/pi-agent/named/1/a b.txt", "-e", "/run/pi-agent/named/2/e.ts"});
}

} // namespace file_arguments_test
