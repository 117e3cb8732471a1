// Copies of the files that the user names on the command line: runner/as_user/reader.hpp
#include "runner/as_user/reader.hpp"

#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace argument_files_test {

namespace {

const HostView no_view;

// What the user has, in `home`; a root that agents write in, `home`/root; and where copies go.
struct Place {
    Place()
    {
        home.make("root");
        struct stat facts {};
        REQUIRE(stat((home / "root").c_str(), &facts) == 0);
        agents.places.push_back({home / "root", facts.st_dev, facts.st_ino});
    }

    HandedFiles hand_over(const std::string &path, NamedAs as = NamedAs::file) const { return hand_over(path, as, copies); }
    HandedFiles hand_over(const std::string &path, NamedAs as, const TemporaryDirectory &place) const
    {
        const ShownPlaces shown{no_view, home / "root", "/nowhere"};
        const UniqueFd to = open_or_throw("opening", place.path(), O_RDONLY | O_DIRECTORY);
        return copy_named_files(UserPaths(agents), {{0, 0, path, as}}, shown, to);
    }
    // The reason of a refusal; empty where there is none.
    std::string refusal(const std::string &path, NamedAs as = NamedAs::file) const
    {
        const TemporaryDirectory nothing;
        const Caught caught = failure_of([&] { return hand_over(path, as, nothing); });
        CHECK(caught.status == (caught.text.empty() ? 0 : 64));
        return caught.text;
    }
    std::string copy(const std::string &name) const
    {
        std::ifstream file(copies / ("1/" + name), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    mode_t mode(const std::string &name) const
    {
        struct stat facts {};
        return stat((copies / ("1/" + name)).c_str(), &facts) == 0 ? facts.st_mode & 07777U : 0;
    }

    TemporaryDirectory home;
    TemporaryDirectory copies;
    AgentPlaces agents;
};

} // namespace

TEST_CASE("a file outside is copied under its name, with nobody's right to write it")
{
    const Place place;
    place.home.write("a\nb", "text");
    CHECK(place.hand_over(place.home / "a\nb").states == "c");
    CHECK(place.copy("a\nb") == "text");
    CHECK(place.mode("a\nb") == 0444);
}

TEST_CASE("what is shown, is not there, or is text and no file is left alone")
{
    const Place place;
    place.home.write("root/f", "x");
    place.home.make("d");
    CHECK(place.hand_over(place.home / "root/f").states == "s");
    CHECK(place.hand_over(place.home / "none").states == ".");
    CHECK(place.hand_over(place.home / "root/none").states == ".");
    CHECK(place.hand_over(place.home / "root/sessions", NamedAs::place).states == "s");
    CHECK(place.hand_over("/tmp/sessions", NamedAs::place).states == "s");
    CHECK(place.hand_over(place.home / "d", NamedAs::text).states == ".");
    CHECK(place.hand_over(place.home / std::string(300, 'x'), NamedAs::text).states == ".");
    CHECK(std::filesystem::is_empty(place.copies.path()));
}

TEST_CASE("what is no file, or would be written, is refused with the reason")
{
    const Place place;
    place.home.make("d");
    REQUIRE(mkfifo((place.home / "fifo").c_str(), 0600) == 0);
    place.home.write("s.jsonl", "{}");
    place.home.link("loop", "loop");
    CHECK(has(place.refusal(place.home / "d"), "it is a directory"));
    CHECK(has(place.refusal("/srv/sessions", NamedAs::place), "name a directory of the project, or leave the option out"));
    CHECK(has(place.refusal(place.home / "fifo"), "not a regular file"));
    CHECK(has(place.refusal(place.home / "fifo", NamedAs::tree), "not a regular file"));
    CHECK(has(place.refusal(place.home / "loop"), "Too many levels"));
    CHECK(has(place.refusal("/dev/fd/0"), "a process outside"));
    CHECK(has(place.refusal("/proc/self/environ"), "a process outside"));
    CHECK(has(place.refusal(place.home / "s.jsonl", NamedAs::written), "--fork continues with a copy"));
}

TEST_CASE("more than the bounds is refused before it is read")
{
    const Place place;
    place.home.write("big", "");
    std::filesystem::resize_file(place.home / "big", copies_size_limit + 1);
    CHECK(has(place.refusal(place.home / "big"), "more than 32 MiB"));
    place.home.make("many");
    for (std::size_t number = 0; number < copies_count_limit; ++number)
        place.home.write("many/" + std::to_string(number), "");
    CHECK(has(place.refusal(place.home / "many", NamedAs::tree), "more than 2000 files"));
}

TEST_CASE("a directory is copied with links within it, and what others lead to")
{
    const Place place;
    place.home.make("d/lib");
    place.home.write("d/lib/real", "part");
    place.home.link("d/also", "lib/real");
    place.home.link("d/lib/up", "../also");
    place.home.write("elsewhere", "far");
    place.home.link("d/lib/far", "../../elsewhere");
    place.home.link("d/nothing", "../none");
    std::filesystem::permissions(place.home.write("d/run", "#!"), std::filesystem::perms::owner_all);
    const HandedFiles handed = place.hand_over(place.home / "d", NamedAs::tree);
    CHECK(handed.states == "c");
    CHECK(place.copy("d/also") == "part");
    CHECK(std::filesystem::read_symlink(place.copies / "1/d/lib/up") == "../also");
    CHECK(place.copy("d/lib/far") == "far");
    CHECK_FALSE(std::filesystem::is_symlink(place.copies / "1/d/lib/far"));
    CHECK(place.mode("d/run") == 0555);
    REQUIRE(handed.notices.size() == 1);
    CHECK(has(handed.notices[0], "d/nothing is not copied"));
}

TEST_CASE("a link that an agent can have made is not followed out of its root")
{
    const Place place;
    place.home.write("secret", "s");
    place.home.link("root/notes", place.home / "secret");
    place.home.link("mine", "root/notes");
    place.home.make("tree");
    place.home.link("tree/in", "../root/notes");
    const HandedFiles seen = place.hand_over(place.home / "root/notes");
    CHECK(seen.states == ".");
    REQUIRE(seen.notices.size() == 1);
    CHECK(has(seen.notices[0], "where an agent can have made it"));
    CHECK(has(place.refusal(place.home / "mine"), "where an agent can have made it"));
    const HandedFiles tree = place.hand_over(place.home / "tree", NamedAs::tree);
    REQUIRE(tree.notices.size() == 1);
    CHECK(has(tree.notices[0], "where an agent can have made it"));
    CHECK(std::filesystem::is_empty(place.copies / "1/tree"));
}

} // namespace argument_files_test
