// What stands for a missing path while a session runs: runner/as_user/protected_paths.hpp
#include "runner/as_user/protected_paths.hpp"

#include "support/as_user.hpp"
#include "support/shown_project.hpp"

#include <filesystem>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace placeholders_test {

namespace {

std::string text_of(const std::string &path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

TEST_CASE("makes what says nothing to git, once, and removes it without a trace")
{
    const ShownProject project;
    project.directory.make("git");
    for (const auto &[path, standin] :
         {std::pair("git/hooks", Standin::directory), std::pair("git/info", Standin::directory),
          std::pair("git/info/attributes", Standin::comment), std::pair("git/commondir", Standin::commondir)}) {
        CHECK(!find_placeholder(project.top, path));
        CHECK(make_placeholder(project.top, path, standin));
        CHECK(make_placeholder(project.top, path, standin)); // another session's is as good
        CHECK(find_placeholder(project.top, path) == standin);
    }
    CHECK(text_of(project.directory / "git/commondir") == "././.\n");
    CHECK(text_of(project.directory / "git/info/attributes").front() == '#');
    for (const char *path : {"git/info/attributes", "git/info", "git/commondir", "git/hooks", "git/never"})
        remove_placeholder(project.top, path);
    CHECK(std::filesystem::is_empty(project.directory / "git"));
}

TEST_CASE("removes nothing that somebody has made theirs")
{
    const ShownProject project;
    CHECK(make_placeholder(project.top, "hooks", Standin::directory));
    project.directory.write("hooks/pre-commit", "mine");
    CHECK(make_placeholder(project.top, "commondir", Standin::commondir));
    project.directory.write("commondir", "../..\n");
    project.directory.make("own");
    project.directory.write("config", "");
    project.directory.link("link", "own");
    for (const char *path : {"hooks", "commondir", "own", "config", "link"})
        remove_placeholder(project.top, path);
    CHECK(text_of(project.directory / "hooks/pre-commit") == "mine");
    CHECK(text_of(project.directory / "commondir") == "../..\n");
    for (const char *path : {"own", "config", "link"})
        CHECK(std::filesystem::exists(project.directory / path));
    CHECK(!find_placeholder(project.top, "hooks")); // in use: no placeholder any more
}

TEST_CASE("where the user may make nothing there is nothing to stand in for")
{
    const ShownProject project;
    project.directory.make("git");
    REQUIRE(::chmod((project.directory / "git").c_str(), 0555) == 0);
    REQUIRE(::chmod(project.directory.path().c_str(), 0755) == 0);
    const std::string made = as_user([&](const AsUser &) {
        const UniqueFd top = UniqueFd::adopt(::open(project.directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        std::string answers;
        for (const Standin standin : {Standin::comment, Standin::commondir, Standin::directory})
            answers += make_placeholder(top, "git/x", standin) ? "made " : "none ";
        return answers;
    });
    CHECK(made == "none none none ");
}

} // namespace placeholders_test
