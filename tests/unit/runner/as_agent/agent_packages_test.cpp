// Where an agent's packages are: runner/as_agent/writer.hpp
#include "runner/as_agent/writer.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace agent_packages_test {

namespace {

std::string place_of(const std::string &source)
{
    const auto found = packages_of({{"packages", {source}}});
    return found.empty() ? "" : found[0].places.front();
}

} // namespace

TEST_CASE("a package has its place by its source")
{
    for (const std::string source : {"npm:p", "npm:p@1.2.3", "npm:p@latest"})
        CHECK_MESSAGE(place_of(source) == ".pi/agent/npm/node_modules/p", source);
    for (const std::string source : {"npm:@s/p", "npm:@s/p@1"})
        CHECK_MESSAGE(place_of(source) == ".pi/agent/npm/node_modules/@s/p", source);
    for (const std::string source :
         {"git:example.org/o/r", "git:example.org/o/r@v1", "https://example.org/o/r", "https://example.org/o/r.git",
          "git:git@example.org:o/r.git", "ssh://git@example.org/o/r", "git://example.org/o/r#main"})
        CHECK_MESSAGE(place_of(source) == ".pi/agent/git/example.org/o/r", source);
    CHECK(packages_of({{"packages", {{{"source", "npm:p"}, {"skills", {}}}}}}).size() == 1);
}

TEST_CASE("of what is no package of these, nothing is said")
{
    for (const std::string source :
         {"", "npm:", "npm:../x", "npm:/x", "npm:a/../b", "git:", "git:x", "git:a/b", "git:../a/b", "./local", "/x", "~/x", "x"})
        CHECK_MESSAGE(place_of(source).empty(), source);
    for (const nlohmann::json &settings : {nlohmann::json::object(), nlohmann::json{{"packages", "npm:p"}},
                                           nlohmann::json{{"packages", {1, nullptr, nlohmann::json::object()}}}})
        CHECK(packages_of(settings).empty());
}

} // namespace agent_packages_test
