// What a repository asks of git that a session may not be able to do: runner/as_user/git_identity.hpp
#include "runner/as_user/git_identity.hpp"

#include "support/descriptors.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>

using namespace pi_agent;
using namespace pi_agent::test;

namespace repository_settings_test {

namespace {

using Names = std::vector<std::string>;

struct Project {
    void write(const std::string &name, const std::string &text) const
    {
        std::filesystem::create_directories(std::filesystem::path(place / name).parent_path());
        place.write(name, text);
    }
    [[nodiscard]] RepositorySettings read(const std::string &repository, const std::string &below) const
    {
        const UniqueFd top = open_path(place.path(), O_PATH | O_DIRECTORY);
        return read_repository_settings({top, place.path()}, repository, below, nullptr);
    }
    TemporaryDirectory place;
};

} // namespace

TEST_CASE("filters are what attributes name, once each")
{
    CHECK(
        filters_of_attributes("*.bin filter=lfs diff=lfs -text\n*.bin\tfilter=lfs\r\n# x filter=no\n*.c -filter !filter filter\nfilter=no\n"
                              "[attr]big filter=b -text\nx  filter=\n") == Names{"b", "lfs"});
}

TEST_CASE("attributes count from the repository's top down to the working directory, but for filters of its own")
{
    const Project project;
    project.write("r/.git/config", "[filter \"own.x\"]\n\tclean = x\n");
    project.write("r/.git/info/attributes", "* filter=info\n");
    project.write(".gitattributes", "* filter=above\n");
    project.write("r/.gitattributes", "* filter=own.x\n* filter=top\n");
    project.write("r/a/.gitattributes", "* filter=a\n");
    project.write("r/b/.gitattributes", "* filter=b\n");
    CHECK(project.read("r", "r/a").filters == Names{"a", "info", "top"});
    CHECK(project.read("r", "r").filters == Names{"info", "top"});
}

TEST_CASE("a repository signs where its own settings say so, and not where its key is in the project")
{
    const Project project;
    project.write(".git/HEAD", "ref: refs/heads/main\n");
    CHECK_FALSE(project.read("", "").signs);
    project.write(".git/config", "[commit]\n\tgpgSign\n");
    CHECK(project.read("", "").signs == true);
    project.write(".git/config", "[commit]\n\tgpgSign = true\n\tgpgSign = off\n");
    CHECK(project.read("", "").signs == false);
    project.write(".git/config", "[commit]\n\tgpgSign = off\n[tag]\n\tgpgsign = 1\n");
    CHECK(project.read("", "").signs == true);
    const std::string with_key = "[commit]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n[user]\n\tsigningKey = keys/k\n";
    project.write(".git/config", with_key);
    CHECK(project.read("", "").signs == true);
    project.write("keys/k", "");
    CHECK(project.read("", "").signs == false);
}

TEST_CASE("a worktree has the settings that its repository's worktrees share, and what leads out of the tree is not read")
{
    const Project project;
    project.write("main/.git/config", "[commit]\n\tgpgsign = true\n");
    project.write("main/.git/worktrees/w/commondir", "../..\n");
    project.write("w/.git", "gitdir: ../main/.git/worktrees/w\n");
    CHECK(project.read("w", "w").signs == true);
    const TemporaryDirectory other;
    other.write("config", "[commit]\n\tgpgsign = true\n");
    project.write("o/.git", "gitdir: " + other.path() + "\n");
    CHECK_FALSE(project.read("o", "o").signs);
    project.place.make("l/.git");
    project.place.link("l/.git/config", other / "config");
    CHECK_FALSE(project.read("l", "l").signs);
}

} // namespace repository_settings_test
