// Which variables of the user's shell a request carries: wrapper/session_client.hpp
#include "support/temporary_directory.hpp"
#include "wrapper/session_client.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace shell_variables_test {

namespace {

// PATH, as a request carries it.
std::string sent(const std::string &path, const AgentPlaces &agents = {})
{
    const char *before = std::getenv("PATH"); // NOLINT(concurrency-mt-unsafe)
    const std::string kept = before == nullptr ? "" : before;
    setenv("PATH", path.c_str(), 1); // NOLINT(concurrency-mt-unsafe)
    Request request{};
    EarlyLook look{};
    look.agents = agents;
    look.read_as_user = {""};
    put_variables_into(request, look);
    setenv("PATH", kept.c_str(), 1); // NOLINT(concurrency-mt-unsafe)
    for (const auto &assignment : request.presentation)
        if (assignment.starts_with("PATH=")) return assignment.substr(5);
    return "";
}

} // namespace

TEST_CASE("behind a link in PATH comes the directory that it leads to, in the user's order")
{
    const TemporaryDirectory home;
    for (const char *name : {"node", "node/bin", "shells", "other"})
        home.make(name);
    home.link("shells/1", home / "node");
    const std::string link = home / "shells/1/bin", other = home / "other", missing = home / "missing";
    CHECK(sent(link + ":" + other + ":relative:" + missing) == link + ":" + home / "node/bin" + ":" + other + ":relative:" + missing);
}

TEST_CASE("a link of an agent's in PATH leads to nothing outside of where agents write")
{
    const TemporaryDirectory home;
    for (const char *name : {"root", "root/bin", "beside"})
        home.make(name);
    home.link("root/link", home / "beside");
    home.link("root/inside", "bin");
    struct stat facts {};
    REQUIRE(::stat((home / "root").c_str(), &facts) == 0);
    AgentPlaces agents;
    agents.places.push_back({home / "root", facts.st_dev, facts.st_ino});
    const std::string link = home / "root/link", inside = home / "root/inside";
    CHECK(sent(link + ":" + inside, agents) == link + ":" + inside + ":" + home / "root/bin");
    CHECK(sent(link) == link + ":" + home / "beside");
}

} // namespace shell_variables_test
