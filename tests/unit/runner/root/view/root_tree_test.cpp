// What the unit shows where: runner/root/view/root_tree.hpp
#include "runner/root/view/root_tree.hpp"

#include "common/base/build_settings.hpp"
#include "runner/as_agent/home.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>

using namespace pi_agent;

namespace root_tree_test {

namespace {

const std::string session = "/run/pi-agent/sessions/0123456789abcdef0123456789abcdef";

const std::vector<Bind> binds =
    tree_binds(session, "/var/lib/pi-agent/users/alice/home", {Frame{"project", "/home/alice/projects"}}, false);

} // namespace

TEST_CASE("only home, project and temporary directories are bound writable, and all comes from the session's directory")
{
    std::set<std::string> writable;
    for (const auto &bind : binds) {
        if (!bind.read_only) writable.insert(bind.target);
        CHECK(bind.source.rfind(session + "/", 0) == 0);
    }
    CHECK(writable == std::set<std::string>{"/var/lib/pi-agent/users/alice/home", "/home/alice/projects", "/tmp", "/var/tmp"});
}

TEST_CASE("a project that is read-only is bound so")
{
    for (const auto &bind : tree_binds(session, "/home", {Frame{"project", "/srv/a"}, Frame{"project1", "/srv/b"}}, true))
        CHECK(bind.read_only == (bind.target != "/home" && bind.target != "/tmp" && bind.target != "/var/tmp"));
}

TEST_CASE("a project is seen at its own path, or in the agent's home under a name of its own")
{
    const std::string home = "/var/lib/pi-agent/users/alice/home";
    ShownTree shown;
    shown.root_path = "/home/alice/projects";
    CHECK(place_of_project(shown, ProjectPaths::host, home) == "/home/alice/projects");
    shown.inside = "a b\n";
    CHECK(place_of_project(shown, ProjectPaths::host, home) == "/home/alice/projects/a b\n");
    CHECK(place_of_project(shown, ProjectPaths::alias, home) == home + "/projects/" + alias_of("/home/alice/projects/a b\n"));
}

} // namespace root_tree_test
