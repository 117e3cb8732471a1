// How far a user's paths are followed: common/as_user/user_paths.hpp

#include "common/as_user/user_paths.hpp"
#include "support/failure.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"
#include "support/temporary_directory.hpp"

#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace user_paths_test {

namespace {

// A home with two roots, one in the other, and things beside them.
struct Home {
    Home()
    {
        for (const char *name : {"root", "root/a", "root/a/b", "root/inner", "root/inner/c", "beside", "store"})
            directory.make(name);
        for (const char *name : {"root/a/file", "root/inner/c/file", "beside/secret", "store/file", "root/masked.pem"})
            directory.write(name, name);
    }
    [[nodiscard]] AgentPlaces places(ProjectScope scope = ProjectScope::root) const
    {
        AgentPlaces places{{}, scope, {{"*.pem", {}}}};
        for (const char *name : {"root", "root/inner"}) {
            struct stat facts {};
            REQUIRE(::stat((directory / name).c_str(), &facts) == 0);
            places.places.push_back({directory / name, facts.st_dev, facts.st_ino});
        }
        return places;
    }
    // Where it ends, beneath the home; or what keeps it.
    [[nodiscard]] std::string end_of(const std::string &path, ProjectScope scope = ProjectScope::root) const
    {
        const UserPaths paths(places(scope));
        try {
            return paths.follow(directory / path)->path.substr(directory.path().size() + 1);
        } catch (const Failure &failure) {
            return failure.what();
        }
    }
    TemporaryDirectory directory;
};

} // namespace

TEST_CASE("links outside of all roots are followed, into roots too")
{
    const Home home;
    home.directory.link("dotfiles", "beside/../store");
    home.directory.link("absolute", home.directory / "dotfiles");
    home.directory.link("skills", "root/a");
    CHECK(home.end_of("absolute/file") == "store/file");
    CHECK(home.end_of("skills/file") == "root/a/file");
    CHECK(home.end_of("skills/b") == "root/a/b");
    CHECK(has(home.end_of("absolute/none"), "No such file"));
}

TEST_CASE("no path leaves a root that it has come into, whoever made the link")
{
    const Home home;
    home.directory.link("skills", "root/a");
    home.directory.link("root/a/key", "../../beside/secret");
    home.directory.link("root/a/absolute", home.directory / "beside/secret");
    home.directory.link("root/a/top", "/");
    home.directory.link("root/a/one", "two/x");
    home.directory.link("root/a/two", "../../beside");
    home.directory.link("users", "root/../beside/secret");
    home.directory.link("root/a/back", "../../root/a/file");
    home.directory.link("root/inner/c/out", "../../a/file");
    home.directory.link("root/a/in", "../inner/c/out");
    for (const std::string path : {"skills/key", "skills/absolute", "skills/top", "skills/top/etc", "skills/one", "users", "skills/back",
                                   "root/inner/c/out", "skills/in"})
        CHECK_MESSAGE(has(home.end_of(path), "where an agent can have made it"), path, ": ", home.end_of(path));
    CHECK(has(home.end_of("skills/key"), "root/a/key leads to ../../beside/secret, out of " + (home.directory / "root")));
}

TEST_CASE("links that stay in a root are followed there")
{
    const Home home;
    home.directory.link("skills", "root/a");
    home.directory.link("root/a/up", "../inner/c/file");
    home.directory.link("root/a/absolute", home.directory / "root/a/file");
    home.directory.link("root/a/chain", "up");
    CHECK(home.end_of("skills/up") == "root/inner/c/file");
    CHECK(home.end_of("skills/chain") == "root/inner/c/file");
    CHECK(home.end_of("skills/absolute") == "root/a/file");
}

TEST_CASE("a loop of links in a root is told as what an agent can have made, one outside is the user's")
{
    const Home home;
    home.directory.link("root/loop", "loop");
    home.directory.link("root/a/one", "../a/two");
    home.directory.link("root/a/two", "one");
    home.directory.link("beside/loop", "loop");
    const UserPaths paths(home.places());
    for (const char *path : {"root/loop", "root/loop/file", "root/a/one"})
        CHECK_THROWS_AS(static_cast<void>(paths.follow(home.directory / path)), NotFollowed);
    CHECK(has(home.end_of("root/a/one"), "more than 40 symlinks are on the path"));
    CHECK_THROWS_AS(static_cast<void>(paths.follow(home.directory / "beside/loop")), SystemFailure);
}

TEST_CASE("with the scope project a link in a root leads to what lies beside or below it, and nowhere else")
{
    const Home home;
    home.directory.link("skills", "root/a");
    home.directory.link("root/a/up", "../inner/c/file");
    home.directory.link("root/a/absolute", home.directory / "root/inner/c/file");
    home.directory.link("root/a/own", home.directory / "root/a/file");
    home.directory.link("root/a/below", "b/../file");
    home.directory.link("root/a/b/out", "../file");
    home.directory.link("root/a/way", "b/out");
    for (const std::string path : {"skills/up", "skills/absolute", "skills/way"})
        CHECK_MESSAGE(has(home.end_of(path, ProjectScope::project), "where an agent can have made it"), path);
    CHECK(home.end_of("skills/own", ProjectScope::project) == "root/a/file");
    CHECK(home.end_of("skills/below", ProjectScope::project) == "root/a/file");
    CHECK(home.end_of("skills/file", ProjectScope::project) == "root/a/file");
}

TEST_CASE("what is masked in a root is not come to")
{
    const Home home;
    home.directory.link("link", "root/masked.pem");
    CHECK(has(home.end_of("link"), "the policy masks"));
}

TEST_CASE("by a bind mount of a root the same is masked, and the same links count" * doctest::skip(not_root()))
{
    const Home home;
    home.directory.make("mount");
    home.directory.link("root/a/masked", "../masked.pem");
    home.directory.link("root/a/absolute", home.directory / "root/a/file");
    const std::string said = in_private_run([&]() -> std::string {
        if (::mount((home.directory / "root").c_str(), (home.directory / "mount").c_str(), nullptr, MS_BIND, nullptr) != 0)
            return no_private_run;
        std::string all;
        for (const char *path : {"mount/a/masked", "mount/masked.pem", "mount/a/absolute", "mount/a/file"})
            all += home.end_of(path) + "\n";
        return all;
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    const std::string masked = "the policy masks " + (home.directory / "root/masked.pem") + " (projects.mask)\n";
    CHECK(said == masked + masked + "root/a/file\nroot/a/file\n");
}

TEST_CASE("the root that a path leads into is known though what it leads to is not there, or leads out")
{
    const Home home;
    home.directory.link("skills", "root/a");
    home.directory.link("root/a/key", "../../beside/secret");
    const UserPaths paths(home.places());
    for (const std::string path : {"skills", "skills/none", "skills/key", "root/none/deep"}) {
        const AgentPlace *place = paths.entered_by(home.directory / path);
        REQUIRE_MESSAGE(place != nullptr, path);
        CHECK(place->path == home.directory / "root");
    }
    CHECK(paths.entered_by(home.directory / "beside/secret") == nullptr);
    CHECK(paths.entered_by(home.directory / "none") == nullptr);
}

TEST_CASE("all links that lead out are found, each with the name by which it is come to")
{
    const Home home;
    home.directory.link("beside/skills", home.directory / "root/a");
    home.directory.link("root/a/b/key", "/etc/passwd");
    home.directory.link("root/a/fine", "file");
    home.directory.link("root/a/loop", "../a");
    const UserPaths paths(home.places());
    const auto found = find_links_out(paths, {home.directory / "beside", home.directory / "none"}, [] { return true; });
    REQUIRE(found.size() == 1);
    CHECK(has(*found.begin(),
              home.directory / "beside/skills/b/key: the link " + (home.directory / "root/a/b/key") + " leads to /etc/passwd"));
    CHECK(find_links_out(paths, {home.directory / "beside"}, [] { return false; }).empty());
}

} // namespace user_paths_test
