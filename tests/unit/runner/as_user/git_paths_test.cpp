// Which paths of a repository make git run something: runner/as_user/protected_paths.hpp
#include "runner/as_user/protected_paths.hpp"

#include "common/base/error.hpp"
#include "common/policy/policy_paths.hpp"
#include "support/failure.hpp"
#include "support/shown_project.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::test;

namespace git_paths_test {

namespace {

constexpr std::size_t many = 500;

// A git directory as far as its layout matters here.
void make_gitdir(const ShownProject &project, const std::string &path, const std::string &config = "[core]\n")
{
    project.directory.make(path + "/hooks");
    project.directory.write(path + "/HEAD", "ref: refs/heads/main\n");
    project.directory.write(path + "/config", config);
}

const GuardedPath *find(const std::vector<GuardedPath> &found, const std::string &path)
{
    const auto at = std::find_if(found.begin(), found.end(), [&](const auto &one) { return join_path(one.base, one.path) == path; });
    return at == found.end() ? nullptr : &*at;
}

} // namespace

TEST_CASE("names what git executes in an ordinary repository, and what stands for it where it is missing")
{
    const ShownProject project;
    make_gitdir(project, "app/.git");
    const auto found = git_executing_paths(project.tree, {"app"}, many);
    CHECK(find(found, "app/.git")->is_way);
    CHECK(find(found, "app/.git/hooks")->standin == Standin::directory);
    CHECK(find(found, "app/.git/config")->standin == Standin::comment);
    CHECK(find(found, "app/.git/commondir")->standin == Standin::commondir);
    CHECK(find(found, "app/.git/info/attributes")->standin == Standin::comment);
    CHECK(find(found, "app/.git/config.worktree")->standin == Standin::none);
    CHECK(found.size() == 6);
}

TEST_CASE("a config.worktree is kept from being made only where git would read it")
{
    const ShownProject project;
    make_gitdir(project, ".git", "[Extensions]\n\tWorktreeConfig = true\n");
    project.directory.make(".git/worktrees/w");
    const auto found = git_executing_paths(project.tree, {""}, many);
    CHECK(find(found, ".git/config.worktree")->standin == Standin::comment);
    CHECK(find(found, ".git/worktrees/w/config.worktree")->standin == Standin::comment);
}

TEST_CASE("knows submodules, nested ones and those with slashes in their names")
{
    const ShownProject project;
    make_gitdir(project, ".git");
    make_gitdir(project, ".git/modules/lib/one", "[core]\n\tworktree = ../../../../lib/one\n");
    make_gitdir(project, ".git/modules/lib/one/modules/inner");
    project.directory.make("lib/one");
    project.directory.write("lib/one/.git", "gitdir: ../../.git/modules/lib/one\n");
    const auto found = git_executing_paths(project.tree, {""}, many);
    CHECK(find(found, ".git/modules/lib/one/config") != nullptr);
    CHECK(find(found, ".git/modules/lib/one/modules/inner/hooks") != nullptr);
    CHECK(find(found, ".git/modules/lib/one/../../../../lib/one/.git") != nullptr);
    CHECK(find(found, ".git/modules/lib/config") == nullptr);
}

TEST_CASE("tells the repository that was asked for from its submodules and worktrees, and a submodule that was asked for from both")
{
    const ShownProject project;
    make_gitdir(project, ".git");
    make_gitdir(project, ".git/modules/one", "[core]\n\tworktree = ../../../one\n");
    make_gitdir(project, ".git/modules/two");
    project.directory.make("one");
    project.directory.write("one/.git", "gitdir: ../.git/modules/one\n");
    project.directory.make(".git/worktrees/w");
    const auto above = git_executing_paths(project.tree, {""}, many);
    CHECK(!find(above, ".git/config")->is_inner);
    CHECK(find(above, ".git/modules/one/config")->is_inner);
    CHECK(find(above, ".git/modules/one/../../../one/.git")->is_inner);
    CHECK(find(above, ".git/worktrees/w/commondir")->is_inner);
    const auto within = git_executing_paths(project.tree, {"", "one"}, many);
    CHECK(!find(within, ".git/modules/one/config")->is_inner);
    CHECK(!find(within, "one/.git")->is_inner);
    CHECK(find(within, ".git/modules/two/config")->is_inner);
}

TEST_CASE("knows worktrees from both sides")
{
    const ShownProject project;
    make_gitdir(project, "main/.git");
    project.directory.make("main/.git/worktrees/side");
    project.directory.write("main/.git/worktrees/side/commondir", "../..\n");
    project.directory.write("main/.git/worktrees/side/gitdir", (project.directory / "side/.git") + "\n");
    project.directory.make("side");
    project.directory.write("side/.git", "gitdir: " + (project.directory / "main/.git/worktrees/side") + "\n");
    for (const char *from : {"main", "side"}) {
        const auto found = git_executing_paths(project.tree, {from}, many);
        CHECK(find(found, "main/.git/hooks") != nullptr);
        CHECK(find(found, "main/.git/worktrees/side/commondir") != nullptr);
        CHECK(find(found, "main/.git/worktrees/side/gitdir") != nullptr);
        CHECK(find(found, "main/.git/worktrees/side/hooks") == nullptr); // git does not look there
        CHECK(find(found, "main/.git/worktrees/side/" + (project.directory / "side/.git")) != nullptr);
    }
}

TEST_CASE("a git directory that is shown by itself, and one that is not shown")
{
    const ShownProject project;
    make_gitdir(project, ".");
    project.directory.make("worktrees/w");
    const auto found = gitdir_executing_paths(project.tree, many);
    CHECK(find(found, "hooks")->standin == Standin::directory);
    CHECK(find(found, "worktrees/w/commondir") != nullptr);
    const ShownProject away;
    away.directory.write(".git", "gitdir: /elsewhere/.git/worktrees/away\n");
    CHECK(git_executing_paths(away.tree, {""}, many).size() == 1); // the file
    const ShownProject own;                                        // a worktree's own, without what it shares
    own.directory.write("commondir", "../..\n");
    CHECK(find(gitdir_executing_paths(own.tree, many), "gitdir") != nullptr);
    CHECK(find(gitdir_executing_paths(own.tree, many), "hooks") == nullptr);
}

TEST_CASE("refuses a repository with too much")
{
    const ShownProject project;
    make_gitdir(project, ".git");
    CHECK(failure_of([&] { return git_executing_paths(project.tree, {""}, 3); }).status == 75);
}

TEST_CASE("takes a placeholder of its own for what it means to git: no other directory")
{
    const ShownProject project;
    make_gitdir(project, ".git");
    project.directory.write(".git/commondir", "././.\n");
    CHECK(find(git_executing_paths(project.tree, {""}, many), ".git/hooks") != nullptr);
}

TEST_CASE("reads what git writes into its small files")
{
    CHECK(gitdir_in("gitdir: ../x\n") == "../x");
    CHECK(!gitdir_in("gitdir:\n"));
    CHECK(!gitdir_in("[core]\n"));
}

TEST_CASE("each directory above with an entry .git counts, whatever that is")
{
    const ShownProject project;
    project.directory.make("a/.git");
    project.directory.make("a/b/c");
    project.directory.write("a/b/.git", "nothing of git's");
    CHECK(repositories_above(project.tree, "a/b/c") == std::vector<std::string>{"a", "a/b"});
    CHECK(repositories_above(project.tree, "").empty());
}

} // namespace git_paths_test
