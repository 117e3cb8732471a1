// Searching a project for what is masked: runner/as_user/protected_paths.hpp
#include "runner/as_user/protected_paths.hpp"

#include "common/base/error.hpp"
#include "common/policy/policy_paths.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "support/as_user.hpp"
#include "support/failure.hpp"
#include "support/shown_project.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace masked_paths_test {

namespace {

using Texts = std::vector<std::string>;

MaskedPaths search(const ShownProject &project, const Texts &patterns)
{
    std::vector<PolicyPath> list;
    for (const auto &pattern : patterns)
        list.push_back({pattern, {}});
    return find_masked(project.tree, list);
}

} // namespace

TEST_CASE("a pattern without a slash is for a name anywhere, one with a slash for a path from the top")
{
    CHECK(is_masked_by(".env*", "a/b/.env.local"));
    CHECK(is_masked_by("*.pem", ".hidden.pem"));
    CHECK(!is_masked_by(".env", "a/.envrc"));
    CHECK(is_masked_by("deploy/keys", "deploy/keys"));
    CHECK(!is_masked_by("deploy/keys", "a/deploy/keys"));
    CHECK(is_masked_by("*/secret?", "a/secret1"));
    CHECK(!is_masked_by("*/secret", "a/b/secret"));
}

TEST_CASE("finds files and directories, and neither follows links nor enters a git directory")
{
    const ShownProject project;
    project.directory.make("a/secrets/deep");
    project.directory.make(".git");
    project.directory.write(".git/.env", "x");
    project.directory.write("a/.env", "x");
    project.directory.write("a/secrets/.env", "x");
    project.directory.write("b", "x");
    project.directory.link("c.env", "b");
    const MaskedPaths found = search(project, {".env", "secrets", "c.env", "a/none"});
    CHECK(found.paths == Texts{"a/.env", "a/secrets"});
    REQUIRE(found.notices.size() == 1);
    CHECK(found.notices[0] == "not masked, because it is a symlink: " + (project.directory / "c.env"));
    CHECK(search(project, {}).paths.empty());
}

TEST_CASE("finds other names of what is masked, in a git directory too")
{
    const ShownProject project;
    project.directory.make("keys/deep");
    project.directory.make(".git");
    const std::string env = project.directory.write(".env", "x");
    const std::string key = project.directory.write("keys/deep/key", "x");
    project.directory.write("other", "x");
    for (const auto &[file, name] : {std::pair(env, ".git/a"), std::pair(key, "b"), std::pair(key, "keys/c"), std::pair(env, ".env.too")})
        REQUIRE(::link(file.c_str(), (project.directory / name).c_str()) == 0);
    const MaskedPaths found = search(project, {".env", ".env.too", "keys"});
    CHECK(found.paths == Texts{".env", ".env.too", ".git/a", "b", "keys"});
    CHECK(found.notices.size() == 2);
}

TEST_CASE("of a file in a directory that its owner closed the other names are masked too" * doctest::skip(not_root()))
{
    for (const mode_t mode : {0U, 0100U, 0400U}) {
        const ShownProject project;
        const Account user = user_account();
        for (const char *name : {"a", "keys/deep", "b"})
            project.directory.make(name);
        for (const char *name : {"a/.env", "keys/deep/key", "b/single", "b/pair"})
            project.directory.write(name, "x");
        for (const auto &[file, name] : {std::pair("a/.env", "b/data"), std::pair("keys/deep/key", "b/more"), std::pair("b/pair", "b/too")})
            REQUIRE(::link((project.directory / file).c_str(), (project.directory / name).c_str()) == 0);
        for (const char *name : {"", "a", "keys", "keys/deep", "b", "a/.env", "keys/deep/key", "b/single", "b/pair"})
            give(project.directory / name, user);
        const auto masked = [&](const std::string &closed) {
            set_mode(project.directory / closed, mode);
            const std::string found = as_user([&](const AsUser &) {
                const UniqueFd top = UniqueFd::adopt(::open(project.directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
                std::string paths;
                for (const auto &path : find_masked({top, project.directory.path()}, {{".env", {}}, {"keys", {}}}).paths)
                    paths += path + " ";
                return paths;
            });
            set_mode(project.directory / closed, 0700);
            return found;
        };
        CHECK(masked("a") == "a b/data b/more keys ");
        CHECK(masked("keys/deep") == "a/.env b/data b/more keys ");
    }
}

TEST_CASE("refuses what it cannot search to the end")
{
    const ShownProject project;
    for (std::size_t index = 0; index <= guard_limit; ++index)
        project.directory.write("key" + std::to_string(index), "");
    CHECK(failure_of([&] { return search(project, {"key*"}); }).status == 75);
    CHECK(search(project, {"key1?"}).paths.size() == 10);
}

TEST_CASE("where a part of a root is shown, paths count from both tops, and second names of what is masked elsewhere are found on request")
{
    const ShownProject root;
    for (const char *directory : {"infra/deploy/keys", "infra/infra", "app/deploy/keys"})
        root.directory.make(directory);
    root.directory.write("infra/deploy/keys/one", "x");
    root.directory.write("secret", "x");
    std::filesystem::create_hard_link(root.directory / "infra/deploy/keys/one", root.directory / "app/linked");
    std::filesystem::create_hard_link(root.directory / "secret", root.directory / "app/other");
    const auto in = [&](const std::string &part, bool all, const std::string &pattern) {
        return find_masked(GuardedRoot{root.tree, part}, all, {{pattern, {}}}).paths;
    };
    CHECK(in("infra", false, "infra/deploy/keys") == Texts{"deploy/keys"});
    CHECK(in("infra", true, "infra/deploy/keys") == Texts{"deploy/keys"});
    CHECK(in("infra/deploy", true, "infra/deploy/keys") == Texts{"keys"});
    CHECK(in("app", false, "deploy/keys") == Texts{"deploy/keys"});
    CHECK(in("app", false, "infra/deploy/keys").empty());
    CHECK(in("app", true, "infra/deploy/keys") == Texts{"linked"}); // the file in a directory that is masked as a whole
    CHECK(in("app", true, "secret") == Texts{"other"});
    CHECK(in("infra", true, "infra") == Texts{"infra"}); // by its name; a start in the outer one is refused
}

TEST_CASE("a directory above the part that is shown, which its user may not list, refuses the search of the whole root" *
          doctest::skip(not_root()))
{
    const ShownProject root;
    set_mode(root.directory.path(), 0755);
    give(root.directory.make("team"), user_account());
    root.directory.make("team/app");
    set_mode(root.directory / "team", 0311);
    const std::string text = as_user([&](const AsUser &) -> std::string {
        const UniqueFd top = UniqueFd::adopt(::open(root.directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        try {
            static_cast<void>(find_masked(GuardedRoot{{top, root.directory.path()}, "team/app"}, true, {{"x", {}}}));
        } catch (const Failure &failure) {
            return failure.what();
        }
        return "";
    });
    CHECK_MESSAGE(has(text, "you may not enter " + (root.directory / "team")), text);
}

} // namespace masked_paths_test
