// What the finder of protected paths says, and what the runner believes of it: runner/as_user/protected_paths.hpp
#include "runner/as_user/protected_paths.hpp"

#include "common/base/channel.hpp"
#include "runner/root/errand/errand.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/shown_project.hpp"

#include <filesystem>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace protected_paths_test {

namespace {

using Texts = std::vector<std::string>;

std::string answer(const Texts &read_only, const Texts &placeholders = {}, const Texts &masked = {}, const Texts &kept = {})
{
    return Encoder().texts(read_only).texts(placeholders).texts(kept).texts(masked).texts({}).texts({}).bytes();
}

} // namespace

TEST_CASE("the runner takes no path that does not lie in the project")
{
    CHECK(decode_guarded_paths(answer({".git/config"}, {".git/hooks"}, {"a b"})).placeholders == Texts{".git/hooks"});
    for (const std::string &strange : Texts{"", "/etc", "..", "a/../../b", "../x", std::string("a\0b", 3)}) {
        CHECK_THROWS_AS(decode_guarded_paths(answer({strange})), ProtocolError);
        CHECK_THROWS_AS(decode_guarded_paths(answer({}, {strange})), ProtocolError);
        CHECK_THROWS_AS(decode_guarded_paths(answer({}, {}, {strange})), ProtocolError);
        CHECK_THROWS_AS(decode_guarded_paths(answer({}, {}, {}, {strange})), ProtocolError);
    }
    CHECK_THROWS_AS(decode_paths(Encoder().texts({"../a"}).bytes()), ProtocolError);
}

TEST_CASE("finds links and what they lead to, makes what is missing at an order, and takes it for its own the next time")
{
    const ShownProject project;
    REQUIRE(::chmod(project.directory.path().c_str(), 0777) == 0);
    project.directory.make("tools/hooks");
    REQUIRE(::chmod(project.directory.make(".git").c_str(), 0777) == 0);
    project.directory.write(".git/config", "[core]\n");
    project.directory.link(".git/hooks", "../tools/hooks");
    const AsRoot root = AsRoot::claim();
    const int top = project.top.get();
    for (int round = 0; round < 2; ++round) {
        Child child(root, "test", user_account(), {top}, [&](const AsUser &user, FdRef channel) {
            serve_guarded_paths(user, {{FdRef(top), project.directory.path()}, "", "", {}}, ProjectsPolicy{}, channel);
        });
        const GuardedPaths found = decode_guarded_paths(child.receive_long(child_patience_seconds));
        CHECK(found.read_only == Texts{".git/hooks", "tools/hooks", ".git/config"});
        CHECK(found.placeholders == Texts{".git/commondir", ".git/info", ".git/info/attributes"});
        CHECK(std::filesystem::exists(project.directory / ".git/info") == (round == 1));
        send_packet(child.channel(), order_for_tree(0), {}, in_seconds(1));
        CHECK(decode_paths(child.receive_long(child_patience_seconds)) == Texts{".git/commondir", ".git/info/attributes"});
        CHECK(std::filesystem::exists(project.directory / ".git/info/attributes"));
    }
}

TEST_CASE("protects what other version control takes programs from, also what is missing where its directory is there")
{
    const ShownProject project;
    for (const char *path :
         {"", ".hg", "app", "app/.jj", "app/.jj/repo", "app/.jj/repo/store", "app/.jj/repo/store/git", "app/.svn", "app/in"}) {
        if (*path != '\0') project.directory.make(path);
        set_mode(project.directory / path, 0777);
    }
    project.directory.write(".hg/requires", "store\n");
    project.directory.write("app/.jj/repo/store/git/config", "[core]\n");
    project.directory.link("app/.bzr", "in");
    project.directory.make("app/in/branch");
    set_mode(project.directory / "app/in/branch", 0777);
    const AsRoot root = AsRoot::claim();
    const int top = project.top.get();
    Child child(root, "test", user_account(), {top}, [&](const AsUser &user, FdRef channel) {
        serve_guarded_paths(user, {{FdRef(top), project.directory.path()}, std::nullopt, "app/in", {}}, ProjectsPolicy{}, channel);
    });
    const GuardedPaths found = decode_guarded_paths(child.receive_long(child_patience_seconds));
    CHECK(found.read_only == Texts{".hg/requires", "app/.jj/repo/store/git/config", "app/.bzr"});
    CHECK(found.placeholders == Texts{".hg/hgrc", ".hg/hgrc-not-shared", "app/.jj/repo/config.toml", "app/.jj/workspace-config.toml",
                                      "app/.jj/repo/store/git/commondir", "app/.jj/repo/store/git/hooks", "app/in/branch/branch.conf"});
    send_packet(child.channel(), order_for_tree(0), {}, in_seconds(1));
    CHECK(decode_paths(child.receive_long(child_patience_seconds)) == found.placeholders);
    CHECK(std::filesystem::is_directory(project.directory / "app/.jj/repo/store/git/hooks"));
    CHECK_FALSE(std::filesystem::exists(project.directory / "app/.hg"));
}

TEST_CASE("a list of the policy takes the place of what git executes")
{
    const ShownProject project;
    REQUIRE(::chmod(project.directory.path().c_str(), 0755) == 0);
    project.directory.make("app/.git");
    REQUIRE(::chmod((project.directory / "app").c_str(), 0777) == 0);
    project.directory.write("app/Makefile", "x");
    ProjectsPolicy policy;
    policy.protect = {{"Makefile", {}}, {"ci/deep/file", {}}, {"tools/deep", {}, true}};
    const AsRoot root = AsRoot::claim();
    const int top = project.top.get();
    Child child(root, "test", user_account(), {top}, [&](const AsUser &user, FdRef channel) {
        serve_guarded_paths(user, {{FdRef(top), project.directory.path()}, "app", "app", {}}, policy, channel);
    });
    const GuardedPaths found = decode_guarded_paths(child.receive_long(child_patience_seconds));
    CHECK(found.read_only == Texts{"app/Makefile"});
    CHECK(found.placeholders == Texts{"app/ci", "app/ci/deep", "app/ci/deep/file", "app/tools"});
    send_packet(child.channel(), order_for_tree(0), {}, in_seconds(1));
    CHECK(decode_paths(child.receive_long(child_patience_seconds)) == Texts{"app/ci/deep/file", "app/tools"});
    CHECK(std::filesystem::is_regular_file(project.directory / "app/ci/deep/file"));
    CHECK(std::filesystem::is_directory(project.directory / "app/tools"));
    Child outside(root, "test", user_account(), {top}, [&](const AsUser &user, FdRef channel) { // where nothing is a repository
        serve_guarded_paths(user, {{FdRef(top), project.directory.path()}, std::nullopt, "", {}}, policy, channel);
    });
    CHECK(decode_guarded_paths(outside.receive_long(child_patience_seconds)).placeholders.empty());
}

TEST_CASE("where a start chose a part of a root without a repository, what the policy protects in the root is protected there")
{
    const ShownProject root;
    set_mode(root.directory.path(), 0755);
    root.directory.make("ci/deep/ci");
    root.directory.make("other");
    root.directory.link("steps", "ci/deep");
    const AsRoot self = AsRoot::claim();
    const auto search = [&](const std::string &part, const std::string &protect, bool chosen) {
        ProjectsPolicy policy;
        policy.protect = {{protect, {"p.yaml", 3, 9}}};
        policy.repository_alone = chosen;
        const UniqueFd shown = open_path(root.directory / part, O_PATH | O_DIRECTORY);
        Child child(self, "test", user_account(), {root.top.get(), shown.get()}, [&](const AsUser &user, FdRef channel) {
            GuardedTrees trees{{FdRef(shown), root.directory / part}, std::nullopt, "", {}};
            trees.around = {root.tree, part};
            serve_guarded_paths(user, trees, policy, channel);
        });
        return decode_guarded_paths(child.receive_long(child_patience_seconds)).read_only;
    };
    CHECK(search("ci", "ci/deep", true) == Texts{"deep"});
    CHECK(search("ci", "steps", true) == Texts{"deep"}); // by a link to it
    CHECK(search("ci", "deep", true) == Texts{"deep"});
    CHECK(search("ci", "ci/deep", false).empty());
    CHECK(search("other", "ci", true).empty());
    const Caught whole = failure_of([&] { return search("ci/deep", "ci", true); });
    CHECK(whole.status == 77);
    CHECK(whole.text == "denied: " + (root.directory / "ci/deep") +
                            " is in what the policy protects (projects.protect: 'ci', p.yaml:3:9), so a session that shows nothing else "
                            "(--pi-agent-scope=project) could write nothing; leave the option out, or add --pi-agent-read-only");
    CHECK(has(failure_of([&] { return search("ci/deep", "steps", true); }).text, "is in what the policy protects"));
}

} // namespace protected_paths_test
