// fd and rg on the host: runner/plan/host_view.hpp
#include "runner/plan/host_view.hpp"

#include "runner/root/kernel/host_facts.hpp"
#include "support/accounts.hpp"
#include "support/failure.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace search_tools_test {

TEST_CASE("what no directory has as a program is missing, and fdfind is an fd")
{
    const TemporaryDirectory place;
    place.make("one");
    place.make("two");
    const std::vector<std::string> directories = {place / "none", place / "one", place / "two"};
    using Names = std::vector<std::string>;
    CHECK(missing_search_tools(directories) == Names{"fd", "rg"});
    set_mode(place.write("two/rg", ""), 0644);
    CHECK(missing_search_tools(directories) == Names{"fd", "rg"});
    set_mode(place / "two/rg", 0755);
    CHECK(missing_search_tools(directories) == Names{"fd"});
    set_mode(place.write("one/fdfind", ""), 0755);
    CHECK(missing_search_tools(directories) == Names{});
    std::filesystem::rename(place / "one/fdfind", place / "one/fd");
    CHECK(missing_search_tools(directories) == Names{});
}

TEST_CASE("each is told with the package that brings it")
{
    CHECK(has(name_package("fd"), "this host has no fd"));
    CHECK(has(name_package("fd"), "fd-find"));
    CHECK(has(name_package("rg"), "ripgrep"));
}

TEST_CASE("nothing is downloaded where the network is restricted and something is missing, unless a layer says otherwise")
{
    EnvironmentInput input{{}, {}, {}, {}, {}, "/home", "agent", "/usr/bin/pi", "ID"};
    keep_from_downloading(input, {NetworkMode::full, {}, {}}, {"fd", "rg"});
    keep_from_downloading(input, {NetworkMode::none, {}, {}}, {});
    CHECK(layer_environment(input).count("PI_OFFLINE") == 0);
    for (const auto mode : {NetworkMode::loopback, NetworkMode::none, NetworkMode::listed}) {
        input.defaults.clear();
        keep_from_downloading(input, {mode, {}, {}}, {"rg"});
        CHECK(layer_environment(input)["PI_OFFLINE"].value == "1");
    }
    input.defaults.clear();
    NetworkPolicy hosts{NetworkMode::hosts, {}, {}, {{"github.com"}}};
    keep_from_downloading(input, hosts, {}); // no rule names where pi looks for updates
    CHECK(layer_environment(input)["PI_OFFLINE"].value == "1");
    input.defaults.clear();
    hosts.hosts.push_back({"pi.dev"});
    keep_from_downloading(input, hosts, {});
    CHECK(layer_environment(input).count("PI_OFFLINE") == 0);
    keep_from_downloading(input, hosts, {"rg"});
    CHECK(layer_environment(input)["PI_OFFLINE"].value == "1");
    input.host_files = {{"PI_OFFLINE", "", "file:1"}};
    CHECK(layer_environment(input)["PI_OFFLINE"].value.empty());
}

} // namespace search_tools_test
