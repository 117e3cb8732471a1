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

TEST_CASE("what is masked is ignored where its pattern counts, as git reads patterns")
{
    const auto ignored = [](std::vector<std::string> masks, const std::string &repository, const std::string &inside = "") {
        GitPlace place{{FdRef(-1), "/p"}, "", repository, {}, ""};
        place.masks = std::move(masks);
        place.inside = inside;
        return ignored_for_masks(place);
    };
    CHECK(ignored({}, "app").empty());
    CHECK(ignored({".env*", "#x", "!y", "a**b", "end "}, "app") == ".env*\n\\#x\n\\!y\na*b\nend\\ \n");
    CHECK(ignored({"deploy/keys"}, "") == "/deploy/keys\n");
    CHECK(ignored({"app/deploy/keys", "a*/x", "other/keys", "app"}, "app") == "/deploy/keys\n/x\napp\n");
    CHECK(ignored({"a/b/keys"}, "b", "a") == "/keys\n");
    CHECK(ignored({"b/keys"}, "b", "a") == "/keys\n");
    CHECK(ignored({"keys/x"}, "", "a") == "/keys/x\n");
    CHECK(ignored({"a/b/c"}, "a/b/c").empty());
}

TEST_CASE("names what a repository keeps where a session does not see it")
{
    const Project project;
    const auto told = [&](bool is_guarded = true) {
        const UniqueFd top = open_path(project.place.path(), O_PATH | O_DIRECTORY);
        GitPlace place{{top, project.place.path()}, "r", "r", {}, ""};
        place.is_guarded = is_guarded;
        place.is_there = [](const std::string &path) { return is_within(path, "/shown"); };
        return missing_git_data(place);
    };
    project.write("r/.git/HEAD", "ref: refs/heads/main\n");
    project.write("r/.git/config", "[core]\n\tbare = false\n");
    project.write("r/.git/refs/x", "");
    project.write("r/.git/objects/x", "");
    project.write("other/.git/objects/x", "");
    const std::string alternates = "r/.git/objects/info/alternates";
    CHECK(told().empty());
    project.write(alternates, "# none\n\n/shown/objects\n../../../other/.git/objects\n" + project.place.path() + "/other/.git/objects\n" +
                                  project.place.path() + "/gone\n");
    CHECK(told().empty());
    project.write(alternates, "/home/me/mirror.git/objects\n");
    REQUIRE(told().size() == 1);
    CHECK(told()[0].starts_with("this repository borrows objects from /home/me/mirror.git/objects ("));
    CHECK(told()[0].find("git repack -a -d") != std::string::npos);
    project.write(alternates, "../../../../out\n");
    CHECK(told().size() == 1);
    project.write(alternates, "/a\n/b\n/c\n/d\n\x1b[31m\n");
    CHECK(told().size() == 3);
    project.write(alternates, "");
    project.write("r/.git/config", "[extensions]\n\trefStorage = reftable\n");
    REQUIRE(told().size() == 1);
    CHECK(told()[0].find("reftable") != std::string::npos);
    CHECK(told(false).empty());
    project.write("r/.git/config", "");
    std::filesystem::remove_all(project.place / "r/.git/refs");
    project.place.link("r/.git/refs", "../../../repo/refs");
    REQUIRE(told().size() == 1);
    CHECK(told()[0].find("r/.git/refs is a link out of what the session shows") != std::string::npos);
}

} // namespace repository_settings_test
