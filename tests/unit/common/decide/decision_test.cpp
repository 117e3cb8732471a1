// Which directory lies in which root: common/decide/decision.hpp
#include "common/decide/decision.hpp"

#include "support/failure.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;
using pi_agent::test::has;

namespace decision_test {

namespace {

const Account alice{"alice", Uid(1000), Gid(1000), "/home/alice", {1000}};

AccessRules rules()
{
    return AccessRules{"users.alice", Position{"p.yaml", 7, 3}, {}, "/home/alice/.pi/agent", "pi-agent", {}};
}

std::variant<Allowed, Refused> ask(const std::vector<std::string> &roots, const std::string &cwd)
{
    std::vector<RootCandidate> candidates;
    candidates.reserve(roots.size());
    for (const auto &root : roots)
        candidates.push_back(RootCandidate{root, std::nullopt, Position{"p.yaml", 8, 12}});
    return decide(alice, rules(), candidates, cwd);
}

} // namespace

TEST_CASE("a directory in a root is allowed, with the innermost root and the path below it")
{
    struct Row {
        std::vector<std::string> roots;
        std::string cwd;
        std::size_t root;
        std::string below;
    };
    const std::vector<Row> rows = {
        {{"/proj"}, "/proj", 0, ""},
        {{"/proj"}, "/proj/a", 0, "a"},
        {{"/proj"}, "/proj/a/b c/d", 0, "a/b c/d"},
        {{"/srv/a", "/srv/b"}, "/srv/b/x", 1, "x"},
        {{"/srv", "/srv/in"}, "/srv/in/x", 1, "x"},
        {{"/srv/in", "/srv"}, "/srv/in/x", 0, "x"},
        {{"/srv/in", "/srv"}, "/srv/inner/x", 1, "inner/x"},
        {{"/srv", "/srv"}, "/srv/x", 0, "x"},
        {{"/proj"}, "/proj/..data", 0, "..data"},
        {{"/proj"}, std::string("/proj/\xff\n\x1b[31m%n$HOME\\:'\""), 0, std::string("\xff\n\x1b[31m%n$HOME\\:'\"")},
    };
    for (const auto &row : rows) {
        CAPTURE(row.cwd);
        const auto decision = ask(row.roots, row.cwd);
        REQUIRE(std::holds_alternative<Allowed>(decision));
        CHECK(std::get<Allowed>(decision).root == row.root);
        CHECK(std::get<Allowed>(decision).below == row.below);
    }
}

TEST_CASE("a directory outside every root is refused, however alike its name")
{
    struct Row {
        std::vector<std::string> roots;
        std::string cwd;
    };
    const std::vector<Row> rows = {
        {{"/proj"}, "/proj-evil"},
        {{"/proj"}, "/proj-evil/proj"},
        {{"/proj"}, "/pro"},
        {{"/proj"}, "/"},
        {{"/proj"}, ""},
        {{"/proj"}, "/Proj"},
        {{"/proj"}, "/other/proj"},
        {{"/proj"}, "proj"},
        {{"/proj/a", "/proj/b"}, "/proj"},
        {{"/proj/a", "/proj/b"}, "/proj/ab"},
        {{}, "/proj"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.cwd);
        CHECK(std::holds_alternative<Refused>(ask(row.roots, row.cwd)));
    }
}

TEST_CASE("a refusal names the directory, the caller, the rule, its place and every root")
{
    const auto decision = ask({"/srv/a", "/srv/b"}, "/tmp/x\ny");
    REQUIRE(std::holds_alternative<Refused>(decision));
    const std::string &text = std::get<Refused>(decision).text;
    CHECK(text == "denied: /tmp/x\\x0ay is outside the project roots of alice (p.yaml:7:3, users.alice.roots): /srv/a /srv/b; "
                  "cd to one of them, or ask the administrator to add this directory");
}

TEST_CASE("a refusal names the roots that do not exist, one of which the caller may have meant")
{
    AccessRules all = rules();
    for (const char *root : {"~/gone", "/srv/a", "~/gone\n2"})
        all.roots.push_back(GrantedRoot{RootSpec{root, Position{"p.yaml", 8, 12}}, std::nullopt});
    const std::vector<RootCandidate> candidates = {{"/srv/a", std::nullopt, Position{"p.yaml", 8, 12}}};
    const auto refusal_with = [&](const std::vector<bool> &there) {
        const AccessRules some = with_roots_there(all, there);
        CHECK(std::count(there.begin(), there.end(), true) == static_cast<std::ptrdiff_t>(some.roots.size()));
        CHECK(some.roots.back().spec.text == (there[2] ? "~/gone\n2" : "/srv/a"));
        return std::get<Refused>(decide(alice, some, candidates, "/tmp")).text;
    };
    CHECK(has(refusal_with({false, true, false}), "add this directory; these roots do not exist: '~/gone' '~/gone\\x0a2'"));
    CHECK(has(refusal_with({false, true, true}), "add this directory; this root does not exist: '~/gone'"));
    CHECK_FALSE(has(refusal_with({true, true, true}), "exist"));
}

TEST_CASE("a name that would forge a second line or a colour is escaped in the refusal")
{
    const auto decision = ask({"/srv"}, std::string("/tmp/\x1b[2K\rallowed\xe2\x80\xae\xff"));
    const std::string &text = std::get<Refused>(decision).text;
    CHECK(text.find_first_of("\x1b\r\n\xff") == std::string::npos);
    CHECK_FALSE(has(text, "\xe2\x80\xae"));
}

TEST_CASE("a start in what the policy masks is refused with the pattern and its place")
{
    ProjectsPolicy projects;
    projects.mask = {{"infra/deploy/keys", {"p.yaml", 3, 9}}, {"secret*", {"p.yaml", 4, 9}}};
    const auto text = [&](const std::string &cwd) {
        const auto refused = masked_start(projects, "/srv/a", cwd);
        return refused ? refused->text : "";
    };
    CHECK(text("/srv/a/infra/deploy/keys") ==
          "denied: /srv/a/infra/deploy/keys is in what the policy masks in /srv/a (projects.mask: 'infra/deploy/keys', p.yaml:3:9), so no "
          "session can work there; cd to another directory, or ask the administrator");
    CHECK(has(text("/srv/a/infra/deploy/keys/deep/x"), "is in what the policy masks"));
    CHECK(has(text("/srv/a/b/secrets/x"), "projects.mask: 'secret*', p.yaml:4:9"));
    for (const char *cwd : {"/srv/a", "/srv/a/infra", "/srv/a/infra/deploy", "/srv/a/b/infra/deploy/keys", "/srv/a/b/.git/secrets"})
        CHECK_MESSAGE(text(cwd).empty(), cwd);
}

} // namespace decision_test
