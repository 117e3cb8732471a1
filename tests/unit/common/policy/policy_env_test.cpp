// common/policy/policy_sections.hpp
#include "common/decide/explained.hpp"
#include "common/policy/policy_sections.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_env_test {

TEST_CASE("names and values that look like secrets are found, with their place")
{
    const auto policy = parse(R"(version: 1
users:
  alice: {roots: [/srv/a], env: {GITHUB_TOKEN: x, KEYBOARD: us}}
env: {OPENAI_API_KEY: x, MONKEY: x, dbPassword: x, HTTP_PROXY: "http://u:p@host:1", NO: "http://host/a:b@c", APIKEY: x, TOKENIZER: x}
)");
    std::vector<std::string> found;
    CHECK(find_exposed_secrets(policy).front().remedy == "move it into a file that only root can read, and name that file in env_files");
    CHECK(find_exposed_secrets(policy).back().remedy.find("a file of that user's own") != std::string::npos);
    for (const auto &diagnostic : find_exposed_secrets(policy))
        found.push_back(to_string(diagnostic.where) + " " + diagnostic.key);
    const std::vector<std::string> expected = {"p.yaml:4:110 env.APIKEY", "p.yaml:4:52 env.HTTP_PROXY", "p.yaml:4:7 env.OPENAI_API_KEY",
                                               "p.yaml:4:37 env.dbPassword", "p.yaml:3:34 users.alice.env.GITHUB_TOKEN"};
    REQUIRE(found.size() == expected.size());
    for (std::size_t index = 0; index < found.size(); ++index)
        CHECK(found[index] == expected[index]);
}

} // namespace policy_env_test
