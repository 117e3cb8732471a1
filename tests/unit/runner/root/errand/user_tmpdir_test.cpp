// The temporary directory that a user names: runner/root/errand/errand.hpp
#include "runner/root/errand/errand.hpp"

#include "runner/plan/host_view.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/skipped.hpp"

#include <fcntl.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace user_tmpdir_test {

namespace {

namespace fs = std::filesystem;

std::string place(const std::string &named, const std::string &below = "demo")
{
    try {
        return place_of_tmpdir(named, "/home/alice/projects", below);
    } catch (const Failure &failure) {
        return std::to_string(static_cast<int>(failure.status()));
    }
}

// The caller's root, and a request that names `named`.
struct Named {
    Named() : account(user_account())
    {
        root_path = make_private(directory, "root", account);
        give(directory.make("root/demo"), account);
    }
    std::string make(const std::string &named, unsigned mask = 022)
    {
        OpenedProject project;
        project.shown.root_path = root_path;
        project.shown.directory = open_path(root_path, O_PATH | O_DIRECTORY);
        project.below = "demo";
        Request request;
        request.tmpdir = named;
        request.umask = mask;
        try {
            return ask_user_tmpdir(root, account, project, request);
        } catch (const Failure &failure) {
            return std::to_string(static_cast<int>(failure.status())) + " " + failure.what();
        }
    }
    [[nodiscard]] std::string mode(const std::string &name) const
    {
        struct stat facts {};
        if (::lstat((root_path + "/" + name).c_str(), &facts) != 0) return "none";
        return (facts.st_uid == account.uid.value() ? "" : "not the caller's ") + std::to_string(facts.st_mode & 07777U);
    }

    TemporaryDirectory directory{"/srv"};
    AsRoot root = AsRoot::claim();
    Account account;
    std::string root_path;
};

} // namespace

TEST_CASE("a relative path is relative to the working directory, an absolute one must lie in the root")
{
    CHECK(place("tmp") == "demo/tmp");
    CHECK(place("./a//b/") == "demo/a/b");
    CHECK(place("../other/tmp") == "other/tmp");
    CHECK(place("..tmp") == "demo/..tmp");
    CHECK(place("tmp", "") == "tmp");
    CHECK(place("/home/alice/projects/x/./y/../z") == "x/z");
    for (const std::string named : {"/tmp", "/", "/home/alice/projects", "/home/alice/projects/", "/home/alice/projects-evil/x",
                                    "/home/alice/projects/../x", "..", "../..", "../../x", "/home/alice", "../../../../../../../x"})
        CHECK_MESSAGE(place(named) == "77", named);
    for (const std::string named : {".git/hooks", ".git", "../.git/x", "/home/alice/projects/a/.hg/b", "tmp/../.jj"})
        CHECK_MESSAGE(place(named) == "77", named);
    CHECK(place("hooks", "demo/.git") == "77");
    CHECK(place(".github/tmp") == "demo/.github/tmp");
}

TEST_CASE("what is refused is told with the root and what to do")
{
    const Caught caught = failure_of([] { return place_of_tmpdir("/tmp/\n", "/srv/app", ""); });
    CHECK(has(caught.text, "--pi-agent-tmpdir: /tmp/\\x0a is not in /srv/app"));
    CHECK(has(caught.text, "name a directory below it"));
}

TEST_CASE("it is made with its parents, by the caller, private, the parents by the caller's umask" * doctest::skip(not_root()))
{
    Named named;
    CHECK(named.make("") == "");
    CHECK(named.make("new/deep/tmp", 027) == "demo/new/deep/tmp");
    CHECK(named.mode("demo/new") == std::to_string(0750));
    CHECK(named.mode("demo/new/deep") == std::to_string(0750));
    CHECK(named.mode("demo/new/deep/tmp") == std::to_string(0700));
    CHECK(named.make(named.root_path + "/demo/new") == "demo/new"); // one that exists stays as it is
    CHECK(named.mode("demo/new") == std::to_string(0750));
}

TEST_CASE("links, files and other people's directories are refused, each in words" * doctest::skip(not_root()))
{
    Named named;
    named.directory.make("outside");
    give(named.directory / "outside", named.account);
    fs::create_symlink(named.directory / "outside", named.root_path + "/demo/out");
    fs::create_symlink(".", named.root_path + "/demo/loop");
    named.directory.write("root/demo/file", "x");
    named.directory.make("root/demo/of-root");
    named.directory.make("root/demo/shut");
    set_mode(named.root_path + "/demo/shut", 0700);
    CHECK(has(named.make("out/x"), "77 denied: --pi-agent-tmpdir: demo/out is a symlink"));
    CHECK(has(named.make("out"), "is a symlink"));
    CHECK(has(named.make("loop/x"), "is a symlink"));
    CHECK(has(named.make("file"), "77 denied: --pi-agent-tmpdir: demo/file is not a directory"));
    CHECK(has(named.make("of-root"), "77 denied: --pi-agent-tmpdir: demo/of-root belongs to another user"));
    CHECK(has(named.make("of-root/x"), "you may not enter or write demo/of-root/x"));
    CHECK(has(named.make("shut/x"), "you may not enter or write demo/shut"));
    CHECK(fs::is_empty(named.directory / "outside"));
    CHECK(named.mode("demo/of-root/x") == "none");
}

} // namespace user_tmpdir_test
