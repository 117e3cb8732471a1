// What of the caller's shell gets in: runner/plan/host_view.hpp
#include "runner/plan/host_view.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace pi_agent;

namespace shell_places_test {

using List = std::vector<std::string>;

const HostView &minimal()
{
    static const HostView view{View::minimal, {"/srv/tools"}, {}};
    return view;
}

PlacesInside at_own_path()
{
    return {{{"/home/alice/work", "/home/alice/work"}, {"/home/alice/other/.git", "/home/alice/other/.git"}},
            {{"/home/alice/.nvm", "/home/alice/.nvm"}},
            minimal(),
            "sub/dir",
            [](const std::string &name) { return name == "vim"; }};
}

PlacesInside by_alias()
{
    return {{{"/home/alice/work", "/agent/projects/work-1"}},
            {{"/home/alice/.nvm", "/agent/.nvm"}},
            minimal(),
            "",
            [](const std::string & /*name*/) { return false; }};
}

List path_of(const PlacesInside &places, const std::string &value)
{
    return judge_shell_places({"PATH=" + value}, places).path;
}

// What passes, or what is said.
std::string judged(const std::string &assignment, const PlacesInside &places = at_own_path())
{
    const ShellPlaces shell = judge_shell_places({assignment}, places);
    if (shell.presentation.size() == 1 && shell.notices.empty()) return shell.presentation.front();
    if (shell.presentation.empty() && shell.notices.size() == 1) return "told: " + shell.notices.front();
    return "neither, or both";
}

bool stays_outside(const std::string &assignment)
{
    return judged(assignment).find(" is not passed on") != std::string::npos;
}

TEST_CASE("what of PATH a session shows gets in, in the user's order, each once")
{
    CHECK(path_of(at_own_path(), "/home/alice/work/bin:/usr/bin:/usr/games:/opt/x/bin:/srv/tools/bin:/home/alice/.nvm/v1/bin:/usr/bin") ==
          List{"/home/alice/work/bin", "/usr/bin", "/usr/games", "/opt/x/bin", "/srv/tools/bin", "/home/alice/.nvm/v1/bin"});
    CHECK(path_of(at_own_path(), "/home/alice/work//bin/./x/:/home/alice/work") == List{"/home/alice/work/bin/x", "/home/alice/work"});
    CHECK(judge_shell_places({"PATH=/usr/bin"}, at_own_path()).presentation.empty());
}

TEST_CASE("what else PATH names does not, and is not told: most of a user's PATH is theirs alone")
{
    const std::string odd =
        ":.:..:bin:~/bin:/home/alice/bin:/home/alice/worked/bin:/home/alice/work/../bin:/tmp/x:/etc:/:/home/alice:/sys/bin:/srv:"
        "/home/alice/.nvmx";
    const ShellPlaces shell = judge_shell_places({"PATH=" + odd}, at_own_path());
    CHECK(shell.path == List{});
    CHECK(shell.notices == List{});
}

TEST_CASE("under an alias a path is the one inside, and nothing tells of the user's home")
{
    CHECK(path_of(by_alias(), "/home/alice/work/bin:/home/alice/.nvm/v1/bin") == List{"/agent/projects/work-1/bin", "/agent/.nvm/v1/bin"});
    CHECK(judged("GIT_DIR=/home/alice/work/.git", by_alias()) == "GIT_DIR=/agent/projects/work-1/.git");
    CHECK(judged("EDITOR=/home/alice/work/ed -w", by_alias()) == "EDITOR=/agent/projects/work-1/ed -w");
}

TEST_CASE("git's places pass where they lie in what is shown, relative ones as they are")
{
    for (const std::string assignment :
         {"GIT_DIR=/home/alice/work/.git", "GIT_DIR=/home/alice/other/.git/worktrees/x", "GIT_DIR=.git", "GIT_INDEX_FILE=../../.git/index",
          "GIT_INDEX_FILE=.git/next-index-12.lock", "GIT_WORK_TREE=..", "GIT_PREFIX=", "GIT_PREFIX=sub/dir/",
          "GIT_ALTERNATE_OBJECT_DIRECTORIES=/home/alice/work/.git/objects:/home/alice/other/.git/objects"})
        CHECK(judged(assignment) == assignment);
    CHECK(judged("GIT_WORK_TREE=/home/alice/work/sub/..") == "GIT_WORK_TREE=/home/alice/work");
}

TEST_CASE("git's places that lie elsewhere stay outside, and so do all others with them")
{
    for (const std::string assignment :
         {"GIT_DIR=/home/alice/secret/.git", "GIT_DIR=../../../.git", "GIT_DIR=/usr/share/x.git", "GIT_DIR=/home/alice/.nvm/.git",
          "GIT_INDEX_FILE=/tmp/index", "GIT_WORK_TREE=/", "GIT_DIR=/home/alice/work/../secret", "GIT_DIR=../../../../../../..",
          "GIT_ALTERNATE_OBJECT_DIRECTORIES=/home/alice/work/.git/objects:/srv/objects", "GIT_OBJECT_DIRECTORY=/home/alice/worked"})
        CHECK_MESSAGE(stays_outside(assignment), assignment);
    const ShellPlaces shell =
        judge_shell_places({"GIT_INDEX_FILE=.git/index", "TERM=x", "GIT_DIR=/srv/r.git", "GIT_PREFIX="}, at_own_path());
    CHECK(shell.presentation == List{"TERM=x"});
    REQUIRE(shell.notices.size() == 1);
    CHECK(shell.notices.front().starts_with("GIT_DIR=/srv/r.git is not passed on, "));
}

TEST_CASE("an editor passes where its program may be seen, and otherwise is told by its name")
{
    for (const std::string assignment : {"EDITOR=vim", "VISUAL=vim -f", "VISUAL=/usr/bin/vim -f", "EDITOR=", "EDITOR=/home/alice/work/ed",
                                         "EDITOR=/home/alice/.nvm/ed\t-x", "VISUAL=/opt/e/e", "EDITOR=bin/ed"})
        CHECK(judged(assignment) == assignment);
    CHECK(judged("EDITOR=/home/alice/bin/\x1b[31m -w").starts_with("told: EDITOR=/home/alice/bin/\\x1b[31m -w is not passed on: "));
    CHECK(stays_outside("VISUAL=/home/alice/work/../bin/e"));
    const ShellPlaces shell = judge_shell_places({"EDITOR=code --wait"}, at_own_path());
    CHECK(shell.presentation == List{"EDITOR=code --wait"});
    REQUIRE(shell.notices.size() == 1);
    CHECK(shell.notices.front().starts_with("EDITOR=code --wait: the host has no program of that name "));
}

TEST_CASE("of a list of places what a session shows passes, and nothing is told of the rest")
{
    CHECK(judged("LD_LIBRARY_PATH=/opt/gcc/lib64:/home/alice/lib:.::/home/alice/work/lib:/srv/x") ==
          "LD_LIBRARY_PATH=/opt/gcc/lib64:/home/alice/work/lib");
    CHECK(judge_shell_places({"CPATH=/home/alice/work/include"}, by_alias()).presentation == List{"CPATH=/agent/projects/work-1/include"});
    CHECK(judged("PERL5LIB=/home/alice/perl5/lib/perl5:/home/alice/.nvm/lib") == "PERL5LIB=/home/alice/.nvm/lib");
    for (const std::string assignment : {"LD_LIBRARY_PATH=", "LD_LIBRARY_PATH=/home/alice/lib:.", "MODULEPATH=/home/alice/work/../x"}) {
        const ShellPlaces shell = judge_shell_places({assignment}, at_own_path());
        CHECK_MESSAGE((shell.presentation.empty() && shell.notices.empty()), assignment);
    }
}

TEST_CASE("a toolchain's place passes where a session sees it, and is not told otherwise")
{
    for (const std::string assignment :
         {"JAVA_HOME=/usr/lib/jvm/java-17", "ANDROID_HOME=/home/alice/.nvm/sdk", "VIRTUAL_ENV=/home/alice/work/.venv"})
        CHECK(judged(assignment) == assignment);
    for (const std::string assignment :
         {"JAVA_HOME=/home/alice/jdk", "DOTNET_ROOT=/home/alice/work/../x", "GOROOT=", "CONDA_PREFIX=conda"}) {
        const ShellPlaces shell = judge_shell_places({assignment}, at_own_path());
        CHECK_MESSAGE((shell.presentation.empty() && shell.notices.empty()), assignment);
    }
    CHECK(judge_shell_places({"GOROOT=/home/alice/.nvm/go"}, by_alias()).presentation == List{"GOROOT=/agent/.nvm/go"});
}

TEST_CASE("a store of the user's that is at its own path has a variable that names it")
{
    PlacesInside places = at_own_path();
    places.toolchains = {{"/home/alice/.local/share/pnpm", "/home/alice/.local/share/pnpm"},
                         {"/home/alice/.local/lib", "/home/alice/.local/lib"}};
    CHECK(judge_shell_places({"TERM=x"}, places).presentation ==
          List{"TERM=x", "pnpm_config_store_dir=/home/alice/.local/share/pnpm/store", "PI_AGENT_USER_LIB=/home/alice/.local/lib"});
    places.toolchains = {{"/home/alice/.local/share/pnpm", "/agent/.local/share/pnpm"},
                         {"/home/alice/x.local/lib", "/home/alice/x.local/lib"}};
    CHECK(judge_shell_places({"TERM=x"}, places).presentation == List{"TERM=x"});
}

TEST_CASE("what names no place passes as it is")
{
    const List variables = {"TERM=x", "LANG=C", "TZ=:/etc/localtime", "ZELLIJ=/tmp/zellij-1000/default,1,0"};
    CHECK(judge_shell_places(variables, at_own_path()).presentation == variables);
}

} // namespace shell_places_test
