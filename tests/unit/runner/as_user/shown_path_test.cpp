// Following paths inside a project as a program in the session would: runner/as_user/protected_paths.hpp
#include "runner/as_user/protected_paths.hpp"

#include "support/failure.hpp"
#include "support/shown_project.hpp"

#include <fcntl.h>
#include <sys/resource.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace shown_path_test {

namespace {

using Kind = ShownPath::Kind;
using Texts = std::vector<std::string>;

} // namespace

TEST_CASE("finds what is there, and says where something is missing")
{
    const ShownProject project;
    project.directory.make("a/b");
    project.directory.write("a/file", "x");
    CHECK(find_shown(project.tree, "", "a/b").kind == Kind::directory);
    CHECK(find_shown(project.tree, "a", "./b/").path == "a/b");
    CHECK(find_shown(project.tree, "", "").path == "");
    const ShownPath file = find_shown(project.tree, "a", "file");
    CHECK(file.kind == Kind::other);
    CHECK(file.path == "a/file");
    const ShownPath missing = find_shown(project.tree, "", "a/none/../deeper");
    CHECK(missing.kind == Kind::missing);
    CHECK(missing.path == "a");
    CHECK(missing.rest == "none/../deeper");
    CHECK(find_shown(project.tree, "", "a/file/below").kind == Kind::other); // as long as the file is there, nothing can be made below it
}

TEST_CASE("follows links by hand and names each")
{
    const ShownProject project;
    project.directory.make("real/hooks");
    project.directory.make("git");
    project.directory.link("git/hooks", "../step");
    project.directory.link("step", project.directory / "real/hooks"); // absolute, as the agent sees it, too
    const ShownPath place = find_shown(project.tree, "git", "hooks");
    CHECK(place.kind == Kind::directory);
    CHECK(place.path == "real/hooks");
    CHECK(place.links == Texts{"git/hooks", "step"});
    project.directory.link("dangling", "real/none");
    CHECK(find_shown(project.tree, "", "dangling").kind == Kind::missing);
    CHECK(find_shown(project.tree, "", "dangling").rest == "none");
}

TEST_CASE("does not leave the project")
{
    const ShownProject project;
    project.directory.make("a");
    CHECK(find_shown(project.tree, "a", "../..").kind == Kind::outside);
    CHECK(find_shown(project.tree, "", "/etc").kind == Kind::outside);
    CHECK(find_shown(project.tree, "", project.directory.path() + "-not/a").kind == Kind::outside);
    CHECK(find_shown(project.tree, "", project.directory / "a").path == "a");
    project.directory.link("up", "../outside");
    CHECK(find_shown(project.tree, "", "up").kind == Kind::outside);
    CHECK(find_shown(project.tree, "", "up").links == Texts{"up"});
    project.directory.link("round", "round");
    CHECK(find_shown(project.tree, "", "round").kind == Kind::endless);
}

TEST_CASE("that no descriptor is left says nothing of what is there")
{
    const ShownProject project;
    project.directory.write("file", "x");
    const UniqueFd last = UniqueFd::adopt(::open("/dev/null", O_RDONLY | O_CLOEXEC)); // descriptors are the lowest that are free
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlimit none{static_cast<rlim_t>(last.get()) + 1, limit.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const int error = errno_of([&] { return find_shown(project.tree, "", "file"); });
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(error == EMFILE);
    CHECK(find_shown(project.tree, "", "file").kind == Kind::other);
}

} // namespace shown_path_test
