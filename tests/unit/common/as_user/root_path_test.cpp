// common/as_user/user_paths.hpp
#include "common/as_user/user_paths.hpp"

#include "common/policy/policy_paths.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace root_path_test {

namespace {

// A user whose home is a temporary directory.
struct Home {
    TemporaryDirectory directory{pi_agent::test::place_for_projects()};
    Account user{"alice", Uid(::geteuid()), Gid(::getegid()), directory.make("home"), {}};

    std::string path_of(const std::string &root) const
    {
        auto result = resolve_root({root, {"p.yaml", 1, 1}}, user);
        if (const auto *problem = std::get_if<RootProblem>(&result)) FAIL(problem->text);
        const auto &resolved = std::get<ResolvedRoot>(result);
        struct stat by_fd {};
        struct stat by_path {};
        REQUIRE(::fstat(resolved.fd.get(), &by_fd) == 0);
        REQUIRE(::stat(resolved.path.c_str(), &by_path) == 0);
        CHECK(by_fd.st_ino == by_path.st_ino);
        return resolved.path;
    }

    std::string problem_of(const std::string &root) const
    {
        const auto result = resolve_root({root, {"p.yaml", 1, 1}}, user);
        REQUIRE(std::holds_alternative<RootProblem>(result));
        CHECK(to_string(std::get<RootProblem>(result).where) == "p.yaml:1:1");
        return std::get<RootProblem>(result).text;
    }
};

} // namespace

TEST_CASE("a directory resolves to itself, with its descriptor")
{
    const Home home;
    const auto projects = home.directory.make("home/projects/a");
    CHECK(home.path_of("~/projects/a") == projects);
    CHECK(home.path_of(projects) == projects);
}

TEST_CASE("the name of the user stands in a root, and leads nowhere else")
{
    Home home;
    const auto own = home.directory.make("scratch/alice/p");
    const auto top = parent_of(parent_of(own));
    CHECK(home.path_of(top + "/{user}/p") == own);
    CHECK(home.path_of(top + "/{user}") == parent_of(own));
    home.user.name = "..";
    CHECK(contains(home.problem_of(top + "/alice/{user}/{user}"), "your account's name cannot stand in a path"));
    home.user.name = "bob";
    CHECK(contains(home.problem_of(top + "/{user}"), "does not exist"));
}

TEST_CASE("a root with the user's name is the user's or root's, and data may be anybody's" * doctest::skip(not_root()))
{
    Home home;
    home.user.uid = Uid(12345);
    const auto own = home.directory.make("scratch/alice");
    const std::string named = parent_of(own) + "/{user}";
    for (const uid_t owner : {0U, 12345U}) {
        REQUIRE(::chown(own.c_str(), owner, 0) == 0);
        CHECK(home.path_of(named) == own);
    }
    REQUIRE(::chown(own.c_str(), 12346, 0) == 0);
    CHECK(contains(home.problem_of(named), "it belongs to somebody else than alice or root"));
    CHECK(home.path_of(own) == own); // which the administrator named
    CHECK(std::holds_alternative<ResolvedRoot>(resolve_shared_data({named, {"p.yaml", 1, 1}}, home.user)));
}

TEST_CASE("refuses a home, what holds it, and the whole file system, by whatever name")
{
    const Home home;
    CHECK(contains(home.problem_of(home.user.home), "a home directory or one that holds it"));
    CHECK(contains(home.problem_of(home.directory.path()), "a home directory or one that holds it"));
    for (const std::string place : {"/home", "/usr", "/var", "/tmp", "/var/tmp"})
        CHECK_MESSAGE(contains(home.problem_of(place), "holds more than projects"), place);
    for (const std::string place : {"/etc/x", "/run/x"})
        CHECK_MESSAGE(contains(home.problem_of(place), "belongs to the system"), place);
    CHECK(contains(home.problem_of("/"), "whole file system"));
    CHECK(contains(home.problem_of("~"), "home directory itself"));
}

TEST_CASE("refuses what holds credentials, also where root's own link leads there" * doctest::skip(not_root()))
{
    const Home home;
    home.directory.make("home/.config/gh");
    home.directory.make("home/.aws");
    const TemporaryDirectory fixed("/srv");
    REQUIRE(::chmod(fixed.path().c_str(), 0755) == 0);
    for (const auto *below : {".config", ".config/gh", ".aws"}) {
        CHECK_MESSAGE(contains(home.problem_of(std::string("~/") + below), "which no session is shown"), below);
        fixed.link("link", home.user.home + "/" + below);
        CHECK_MESSAGE(contains(home.problem_of(fixed / "link"), "which no session is shown"), below);
        REQUIRE(::unlink((fixed / "link").c_str()) == 0);
    }
}

TEST_CASE("refuses what is absent or no directory, with the reason")
{
    const Home home;
    home.directory.write("home/file", "");
    for (const auto *absent : {"~/absent", "~/absent/below"}) {
        const std::string said = home.problem_of(absent);
        CHECK(contains(said, "/home/" + std::string(absent).substr(2) + ") does not exist; create it or remove it from roots"));
        CHECK_FALSE(contains(said, "cannot be used"));
    }
    CHECK(contains(home.problem_of("~/file"), "it is not a directory"));
    CHECK(contains(home.problem_of("~/file/below"), "Not a directory"));
    CHECK(contains(home.problem_of("~/../x"), "'..'"));
}

TEST_CASE("a root that does not exist is left out, unless it has rules of its own or is the last")
{
    const Home home;
    home.directory.make("home/projects");
    home.directory.write("home/file", "");
    const RootSpec there{"~/projects", {"p.yaml", 1, 1}};
    const RootSpec absent{"~/absent", {"p.yaml", 1, 2}};
    RootSpec ruled{"~/absent", {"p.yaml", 1, 3}};
    ruled.rules = std::make_shared<const Rules>();
    const auto found = [&](const std::vector<RootSpec> &roots) {
        AccessRules rules{"users.alice", Position{"p.yaml", 2, 3}, {}, "/home/alice/.pi/agent", "pi-agent", {}};
        for (const auto &root : roots)
            rules.roots.push_back(GrantedRoot{root, std::nullopt});
        std::string text;
        for (const auto &root : resolve_roots(rules, home.user))
            text += root ? "+" : "-";
        return text;
    };
    CHECK(found({there}) == "+");
    CHECK(found({absent, there, absent}) == "-+-");
    const auto problem_with = [&](const std::vector<RootSpec> &roots) {
        const Caught caught = failure_of([&] { return found(roots); });
        CHECK(caught.status == 78);
        return caught.text;
    };
    CHECK(contains(problem_with({absent, absent}), "p.yaml:1:2: users.alice.roots: the root '~/absent' ("));
    CHECK_FALSE(contains(problem_with({absent}), "cannot start"));
    const std::string with_rules = problem_with({there, ruled});
    CHECK(contains(with_rules, "p.yaml:1:3: users.alice.roots: the root '~/absent' ("));
    CHECK(contains(with_rules, "it has rules of its own, so until then alice cannot start pi in other roots either"));
    CHECK(contains(problem_with({there, {"~/file", {"p.yaml", 1, 4}}}), "p.yaml:1:4: users.alice.roots: the root '~/file' cannot be used"));
}

TEST_CASE("refuses a last or middle component that is a link its user controls")
{
    const Home home;
    home.directory.make("home/real/sub");
    for (const auto &link : {home.directory.link("home/last", "real"), home.directory.link("home/outward", "/usr")}) {
        if (::geteuid() == 0) REQUIRE(::lchown(link.c_str(), 12345, 12345) == 0);
    }
    CHECK(contains(home.problem_of("~/last"), "/home/last, which somebody else than root can change"));
    CHECK(contains(home.problem_of("~/last/sub"), "through the symlink"));
    CHECK(contains(home.problem_of("~/outward"), "through the symlink"));
    CHECK(contains(home.problem_of("~/outward/lib"), "through the symlink"));
}

TEST_CASE("refuses root's own link where others can replace it, as in /tmp" * doctest::skip(not_root()))
{
    const TemporaryDirectory fixed("/srv");
    fixed.make("real");
    fixed.link("link", "real");
    REQUIRE(::chmod(fixed.path().c_str(), 0755) == 0);
    const Home home;
    CHECK(home.path_of(fixed / "link") == fixed / "real");
    REQUIRE(::chmod(fixed.path().c_str(), 0775) == 0);
    CHECK(contains(home.problem_of(fixed / "link"), "somebody else than root can change"));
    REQUIRE(::chmod(fixed.path().c_str(), 01777) == 0);
    CHECK(contains(home.problem_of(fixed / "link"), "somebody else than root can change"));
    REQUIRE(::chmod(fixed.path().c_str(), 0755) == 0);
    REQUIRE(::lchown((fixed / "link").c_str(), 12345, 12345) == 0);
    CHECK(contains(home.problem_of(fixed / "link"), "somebody else than root can change"));
    REQUIRE(::lchown((fixed / "link").c_str(), 0, 0) == 0);
    REQUIRE(::chown(fixed.path().c_str(), 12345, 12345) == 0);
    CHECK(contains(home.problem_of(fixed / "link"), "somebody else than root can change"));
}

TEST_CASE("follows a link that only root can change, and names where it leads")
{
    const Home home;
    struct stat status {};
    REQUIRE(::lstat("/var/run", &status) == 0);
    if (S_ISLNK(status.st_mode)) CHECK(contains(home.problem_of("/var/run"), "it is '/run', which belongs to the system"));
    REQUIRE(::lstat("/bin", &status) == 0);
    if (S_ISLNK(status.st_mode)) CHECK(home.path_of("/bin") == "/usr/bin");
}

TEST_CASE("refuses a directory that root's link leads to under a name no property may hold" * doctest::skip(not_root()))
{
    const TemporaryDirectory fixed("/srv");
    REQUIRE(::chmod(fixed.path().c_str(), 0755) == 0);
    fixed.make("x\nExecStopPost=+command");
    fixed.link("link", "x\nExecStopPost=+command");
    const Home home;
    CHECK(contains(home.problem_of(fixed / "link"), "x\\x0aExecStopPost=+command"));
    fixed.link("loop", "loop");
    CHECK(contains(home.problem_of(fixed / "loop"), "Too many levels of symbolic links"));
    fixed.link("up", "../../..");
    CHECK(contains(home.problem_of(fixed / "up"), "it is '/'"));
    fixed.link("home", home.user.home);
    CHECK(contains(home.problem_of(fixed / "home"), ", a home directory or one that holds it"));
}

TEST_CASE("expands ~ and nothing else")
{
    const Account user{"alice", Uid(1000), Gid(1000), "/home/alice/", {}};
    CHECK(expand_home("~", user) == "/home/alice");
    CHECK(expand_home("~/x", user) == "/home/alice/x");
    CHECK(expand_home("/srv/~", user) == "/srv/~");
    CHECK(expand_home("~bob", user) == "~bob");
    const Account rootless{"alice", Uid(1000), Gid(1000), "/", {}};
    CHECK(expand_home("~/x", rootless) == "/x");
}

TEST_CASE("a path lies within a root only by whole components")
{
    CHECK(is_within("/proj", "/proj"));
    CHECK(is_within("/proj/a", "/proj"));
    CHECK_FALSE(is_within("/proj-evil", "/proj"));
    CHECK_FALSE(is_within("/pro", "/proj"));
    CHECK_FALSE(is_within("/Proj", "/proj"));
    CHECK_FALSE(is_within("", "/proj"));
    CHECK(is_within("/x", "/"));
}

} // namespace root_path_test
