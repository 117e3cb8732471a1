// The section `projects`: common/policy/policy_sections.hpp
#include "common/policy/policy_sections.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_projects_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [/srv/a]}}\n";

ProjectsPolicy projects_of(const std::string &section)
{
    return parse(head + "projects: {" + section + "}\n").projects;
}

std::vector<std::string> texts(const std::vector<PolicyPath> &paths)
{
    std::vector<std::string> list;
    for (const auto &path : paths)
        list.push_back(path.path);
    return list;
}

} // namespace

TEST_CASE("the files of a project are the user's unless the policy says that nothing is mapped")
{
    CHECK(parse(head).projects.ownership == ProjectOwnership::idmap);
    CHECK(projects_of("ownership: idmap").ownership == ProjectOwnership::idmap);
    CHECK(projects_of("ownership: none").ownership == ProjectOwnership::none);
    for (const std::string wrong : {"user", "None", "[none]", "false"})
        CHECK_MESSAGE(contains(problems_of(head + "projects: {ownership: " + wrong + "}\n"), "p.yaml:3:23: projects.ownership: "), wrong);
}

TEST_CASE("a project is its whole root, at its own path, with git's executing paths protected, unless the policy says otherwise")
{
    for (const auto &projects :
         {parse(head).projects, projects_of("paths: host, scope: root, protect: default, mask: [], aftermath: true")}) {
        CHECK(projects.paths == ProjectPaths::host);
        CHECK(projects.scope == ProjectScope::root);
        CHECK_FALSE(projects.protect.has_value());
        CHECK(projects.mask.empty());
        CHECK(projects.aftermath);
    }
    CHECK(projects_of("paths: alias").paths == ProjectPaths::alias);
    CHECK(projects_of("scope: project").scope == ProjectScope::project);
    CHECK_FALSE(projects_of("aftermath: false").aftermath);
}

TEST_CASE("a list for protect takes the place of the default, and an empty one protects nothing")
{
    CHECK(texts(*projects_of("protect: [.git/hooks, ci/deploy.sh]").protect) == std::vector<std::string>{".git/hooks", "ci/deploy.sh"});
    CHECK(projects_of("protect: []").protect->empty());
    const auto kinds = *projects_of("protect: [ci/, Makefile]").protect;
    CHECK(texts(kinds) == std::vector<std::string>{"ci", "Makefile"});
    CHECK((kinds[0].is_directory && !kinds[1].is_directory));
    for (const std::string odd : {"'ci//'", "'/'", "'./'", "'../'"})
        CHECK_MESSAGE(!problems_of(head + "projects: {protect: [" + odd + "]}\n").empty(), odd);
    CHECK(texts(projects_of("mask: ['.env*', deploy/keys]").mask) == std::vector<std::string>{".env*", "deploy/keys"});
}

TEST_CASE("a path of a project that leads out of it is refused where it stands")
{
    CHECK(contains(problems_of(head + "projects: {mask: [a, /b]}\n"), "p.yaml:3:22"));
    for (const std::string key : {"protect", "mask"}) {
        CHECK(contains(problems_of(head + "projects: {" + key + ": [/etc]}\n"), "is not relative to the project"));
        CHECK(contains(problems_of(head + "projects: {" + key + ": [~/x]}\n"), "is not relative to the project"));
        CHECK(contains(problems_of(head + "projects: {" + key + ": [a/../../b]}\n"), "holds '//', '.' or '..'"));
    }
    CHECK(contains(problems_of(head + "projects: {protect: none}\n"), "default"));
    CHECK(contains(problems_of(head + "projects: {paths: aliases}\n"), "alias"));
}

} // namespace policy_projects_test
