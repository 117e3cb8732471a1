// Which variables are keys of which providers: runner/plan/host_view.hpp
#include "runner/plan/host_view.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace provider_keys_test {

namespace {

using Providers = std::set<std::string>;

} // namespace

TEST_CASE("a variable that is set makes its providers managed")
{
    CHECK(providers_with_keys(Environment{}).empty());
    CHECK(providers_with_keys(Environment{{"ANTHROPIC_API_KEY", "k"}}) == Providers{"anthropic"});
    CHECK(providers_with_keys(Environment{{"ANTHROPIC_OAUTH_TOKEN", "k"}}) == Providers{"anthropic"});
    CHECK(providers_with_keys(Environment{{"MOONSHOT_API_KEY", "k"}}) == Providers{"moonshotai", "moonshotai-cn"});
    CHECK(providers_with_keys(Environment{{"OPENAI_API_KEY", "k"}, {"GEMINI_API_KEY", "k"}, {"PATH", "/bin"}}) ==
          Providers{"google", "openai"});
}

TEST_CASE("what is empty, unknown or meant for other tools manages nothing")
{
    for (const std::string name : {"OPENAI_API_KEYS", "openai_api_key", "OPENAI", "GH_TOKEN", "GITHUB_TOKEN", "HTTP_PROXY", ""})
        CHECK_MESSAGE(providers_with_keys(Environment{{name, "k"}}).empty(), name);
    CHECK(providers_with_keys(Environment{{"OPENAI_API_KEY", ""}}).empty());
}

TEST_CASE("a key of the shell is missed where nothing else sets it")
{
    EnvironmentInput environment{};
    environment.host_files = {{"OPENAI_API_KEY", "k", "/home/alice/.pi/agent/env:1"}};
    environment.managed = {{"GEMINI_API_KEY", ""}};
    const std::vector<std::string> names = {"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "NO_KEY_OF_ANYBODY"};
    const auto missed = missed_keys(names, environment, {".pi/agent/env"});
    REQUIRE(missed.size() == 2);
    CHECK(missed[0].first == "ANTHROPIC_API_KEY");
    CHECK(missed[0].second.find("write ANTHROPIC_API_KEY=… into ~/.pi/agent/env") != std::string::npos);
    CHECK(missed[1].first == "GEMINI_API_KEY");
    CHECK(missed_keys({"ANTHROPIC_API_KEY"}, environment, {})[0].second.find("ask the administrator") != std::string::npos);
    CHECK(missed_keys({}, environment, {}).empty());
    CHECK(missed_keys({"PI_CODING_AGENT_DIR"}, environment, {})[0].second.find("PI_CODING_AGENT_DIR of your shell is not used") == 0);
}

} // namespace provider_keys_test
