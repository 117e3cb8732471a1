// How pi reaches providers whose keys the gate holds: runner/plan/sandbox_plan.hpp, common/policy/host_rule.hpp
#include "runner/plan/host_view.hpp"
#include "runner/plan/sandbox_plan.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace held_keys_test {

namespace {

ProviderRule rule(const std::string &name, const std::string &host = "")
{
    ProviderRule one;
    one.name = name;
    one.host = host;
    return one;
}

} // namespace

TEST_CASE("pi is led to the gate, with the provider's host in the path and a placeholder as its key")
{
    const auto models = models_of_held_keys({rule("anthropic"), rule("openai"), rule("azure", "mine.openai.azure.com")},
                                            {"sk-ant-oat-held-by-the-gate", "held-by-the-gate", "held-by-the-gate"}, 809);
    CHECK(models.dump() ==
          R"({"providers":{"anthropic":{"apiKey":"sk-ant-oat-held-by-the-gate","baseUrl":"http://127.0.0.1:809/api.anthropic.com"},)"
          R"("azure":{"apiKey":"held-by-the-gate","baseUrl":"http://127.0.0.1:809/mine.openai.azure.com/openai/v1"},)"
          R"("azure-openai-responses":{"apiKey":"held-by-the-gate","baseUrl":"http://127.0.0.1:809/mine.openai.azure.com/openai/v1"},)"
          R"("openai":{"apiKey":"held-by-the-gate","baseUrl":"http://127.0.0.1:809/api.openai.com/v1"}}})");
    CHECK(models_of_held_keys({}, {}, 809).empty());
}

TEST_CASE("no layer sets a variable with a key that the gate holds")
{
    EnvironmentInput input{};
    input.host_files = {{"ANTHROPIC_API_KEY", "theirs", "env:1"}, {"GEMINI_API_KEY", "other", "env:2"}};
    input.managed = {{"ANTHROPIC_OAUTH_TOKEN", "ours"}};
    input.per_user = {{"AWS_BEARER_TOKEN_BEDROCK", "ours"}};
    Policy policy;
    policy.providers = {rule("anthropic"), rule("amazon-bedrock")};
    hold_outside(input, policy);
    const auto layered = layer_environment(input);
    CHECK_FALSE(layered.contains("ANTHROPIC_API_KEY"));
    CHECK_FALSE(layered.contains("ANTHROPIC_OAUTH_TOKEN"));
    CHECK(layered.at("GEMINI_API_KEY").value == "other");
    CHECK(layered.at("AWS_BEARER_TOKEN_BEDROCK").value == key_placeholder);
    CHECK(layered.at("AWS_BEDROCK_FORCE_HTTP1").value == "1");
    CHECK(missed_keys({"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}, input, {}).size() == 1);
}

TEST_CASE("a provider's host is its own, and a policy can name only one of its kind")
{
    const Provider &azure = *find_provider("azure-openai-responses");
    const Provider &bedrock = *find_provider("amazon-bedrock");
    CHECK(host_of_provider(*find_provider("openai"), "").host == "api.openai.com");
    CHECK(host_of_provider(*find_provider("openai"), "evil.example").problem);
    CHECK(host_of_provider(azure, "").problem);
    CHECK(host_of_provider(azure, "a.openai.azure.com").host == "a.openai.azure.com");
    for (const char *host :
         {".openai.azure.com", "openai.azure.com", "a.b.openai.azure.com", "a.openai.azure.com.evil.example", "-.openai.azure.com"})
        CHECK_MESSAGE(host_of_provider(azure, host).problem, host);
    CHECK(host_of_provider(bedrock, "").host == "bedrock-runtime.us-east-1.amazonaws.com");
    CHECK(host_of_provider(bedrock, "bedrock-runtime.eu-central-1.amazonaws.com").host == "bedrock-runtime.eu-central-1.amazonaws.com");
    CHECK(host_of_provider(bedrock, "bedrock-runtime.amazonaws.com").problem);
    CHECK(find_provider("github-copilot") == nullptr);
    CHECK(find_provider("") == nullptr);
    CHECK(find_provider("azure") == &azure); // the name since pi 1.0
}

TEST_CASE("a token of a login goes where a login's does, and pi is told by what stands for it")
{
    const Provider &anthropic = *find_provider("anthropic");
    CHECK(form_of_key(anthropic, "sk-ant-api03-x").header == "x-api-key");
    const KeyForm token = form_of_key(anthropic, "sk-ant-oat01-x");
    CHECK(token.header == "authorization");
    CHECK(token.prefix == "Bearer ");
    CHECK(token.placeholder == "sk-ant-oat-held-by-the-gate");
    CHECK(form_of_key(*find_provider("openai"), "sk-ant-oat01-x").header == "authorization");
}

TEST_CASE("the table has whole providers: every path is absolute, every method and header one that the gate knows")
{
    for (const Provider &provider : providers_with_gate()) {
        CHECK(!provider.requests.empty());
        CHECK((!provider.host.empty() || !provider.host_pattern.empty()));
        for (const auto &request : provider.requests) {
            CHECK(request.path.starts_with("/"));
            CHECK((request.method == "GET" || request.method == "POST" || request.method == "WEBSOCKET"));
        }
        for (const auto &[name, value] : provider.set)
            CHECK(!value.empty());
    }
}

} // namespace held_keys_test
