// The project's name in the agent's home: runner/as_agent/home.hpp
#include "runner/as_agent/home.hpp"

#include "runner/wire/answer.hpp"
#include "support/accounts.hpp"
#include "support/as_user.hpp"
#include "support/descriptors.hpp"
#include "support/skipped.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>

using namespace pi_agent;
using namespace pi_agent::test;

namespace project_alias_test {

TEST_CASE("an alias is the same at every start, harmless as a name, and another for another directory")
{
    CHECK(alias_of("/home/alice/projects/demo") == alias_of("/home/alice/projects/demo"));
    CHECK(alias_of("/home/alice/projects/demo").substr(0, 5) == "demo-");
    CHECK(alias_of("/home/alice/projects/demo").size() == 13);
    CHECK(alias_of("/srv/demo") != alias_of("/home/alice/projects/demo"));
    CHECK(alias_of("/srv/a\nb %n").substr(0, 7) == "a_b__n-");
    CHECK(alias_of("/srv/.hidden").substr(0, 2) == "_.");
    CHECK(alias_of("/srv/" + std::string(255, 'x')).size() == 73);
    CHECK(alias_of("/srv/demo") == "demo-9515c8c2");
}

TEST_CASE("the link to the project is made once, and what the agent put in its place is left and told" * doctest::skip(not_root()))
{
    TemporaryDirectory place{place_for_projects()};
    const std::string home = make_private(place, "home", user_account());
    const UniqueFd fd = open_path(home, O_RDONLY | O_DIRECTORY);
    const auto link = [&](const std::string &target) {
        const AsRoot root = AsRoot::claim();
        Child child(root, "test", user_account(), {fd.get()},
                    [&](const AsUser &user, FdRef channel) { send_answer(channel, "said: " + link_alias(user, fd, "demo-1", target)); });
        return child.receive().bytes.substr(6);
    };
    const std::string path = home + "/projects/demo-1";
    CHECK(link("/srv/demo").empty());
    CHECK(std::filesystem::read_symlink(path) == "/srv/demo");
    CHECK(link("/srv/demo").empty());
    CHECK(link("/srv/another") == "~/projects/demo-1 of the agent's home is something else");
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    CHECK(link("/srv/demo").empty()); // left by a session with aliases
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    std::filesystem::create_directory(path + "/mine");
    CHECK(link("/srv/demo") == "~/projects/demo-1 of the agent's home is a directory of its own");
    std::filesystem::remove_all(home + "/projects");
    std::filesystem::create_symlink("/etc", home + "/projects");
    CHECK(link("/srv/demo") == "~/projects of the agent's home is not a directory that the agent may enter");
}

} // namespace project_alias_test
