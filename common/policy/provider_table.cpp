// The providers of models whose keys a gate can hold, as data.
#include "common/policy/provider_table.hpp"

#include "common/base/text.hpp"

#include <array>
#include <utility>

namespace pi_agent {

namespace {

// From pi 0.73.1 and 0.87.1: packages pi-ai, dist/providers and dist/api (hosts, headers, paths), and dist/env-api-keys.js (variables).
// Requests are those that pi and the providers' own libraries make for answers of a model, and lists of models. Not what a key can do
// otherwise: files, batches, stored answers, other keys, accounts.
using Variable = std::pair<std::string_view, std::string_view>;

// platform.claude.com/docs/en/api: Messages, Models
constexpr ProviderRequest anthropic_requests[] = {
    {"POST", "/v1/messages"},
    {"POST", "/v1/messages/count_tokens"},
    {"GET", "/v1/models"},
    {"GET", "/v1/models/"},
};
constexpr std::string_view anthropic_variables[] = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN"};

// platform.openai.com/docs/api-reference: Responses, Chat, Embeddings, Models; Responses also as a WebSocket
constexpr ProviderRequest openai_requests[] = {
    {"POST", "/v1/responses"},
    {"POST", "/v1/responses/compact"},
    {"POST", "/v1/responses/input_tokens"},
    {"WEBSOCKET", "/v1/responses"},
    {"POST", "/v1/chat/completions"},
    {"POST", "/v1/embeddings"},
    {"GET", "/v1/models"},
    {"GET", "/v1/models/"},
};
constexpr std::string_view openai_variables[] = {"OPENAI_API_KEY"};

// ai.google.dev/api: models.generateContent, streamGenerateContent, countTokens, embedContent, batchEmbedContents, models.list. Each by its
// name: others of the same form start batches, and work that goes on for hours.
constexpr ProviderRequest google_requests[] = {
    {"POST", "/v1beta/models/*:generateContent"},
    {"POST", "/v1beta/models/*:streamGenerateContent"},
    {"POST", "/v1beta/models/*:countTokens"},
    {"POST", "/v1beta/models/*:embedContent"},
    {"POST", "/v1beta/models/*:batchEmbedContents"}, // at once
    {"GET", "/v1beta/models"},
    {"GET", "/v1beta/models/*"},
};
constexpr std::string_view google_variables[] = {"GEMINI_API_KEY", "GOOGLE_API_KEY"};

// openrouter.ai/docs/api-reference: chat completions, messages, responses, embeddings, models
constexpr ProviderRequest openrouter_requests[] = {
    {"POST", "/api/v1/chat/completions"}, {"POST", "/api/v1/messages"}, {"POST", "/api/v1/responses"},
    {"POST", "/api/v1/embeddings"},       {"GET", "/api/v1/models"},    {"GET", "/api/v1/models/"},
};
constexpr std::string_view openrouter_variables[] = {"OPENROUTER_API_KEY"};

// learn.microsoft.com/azure/ai-foundry/openai: the v1 API, and deployments as older clients name them
constexpr ProviderRequest azure_requests[] = {
    {"POST", "/openai/v1/responses"},
    {"WEBSOCKET", "/openai/v1/responses"},
    {"POST", "/openai/v1/chat/completions"},
    {"POST", "/openai/v1/embeddings"},
    {"GET", "/openai/v1/models"},
    {"POST", "/openai/deployments/*/chat/completions"},
    {"POST", "/openai/deployments/*/embeddings"},
};
constexpr std::string_view azure_variables[] = {"AZURE_OPENAI_API_KEY", "AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_RESOURCE_NAME"};

// docs.aws.amazon.com/bedrock/latest/APIReference: Converse, ConverseStream, InvokeModel, InvokeModelWithResponseStream
constexpr ProviderRequest bedrock_requests[] = {
    {"POST", "/model/*/converse"},
    {"POST", "/model/*/converse-stream"},
    {"POST", "/model/*/invoke"},
    {"POST", "/model/*/invoke-with-response-stream"},
};
constexpr std::string_view bedrock_variables[] = {"AWS_BEARER_TOKEN_BEDROCK", "AWS_BEDROCK_SKIP_AUTH"};
constexpr Variable bedrock_set[] = {
    {"AWS_BEARER_TOKEN_BEDROCK", key_placeholder}, // pi 0.73 takes no key of models.json here
    {"AWS_BEDROCK_FORCE_HTTP1", "1"},              // its library would begin with HTTP/2
};

constexpr Provider known_providers[] = {
    {"anthropic", "api.anthropic.com", "", "x-api-key", "", "", anthropic_requests, anthropic_variables, {}},
    {"openai", "api.openai.com", "", "authorization", "Bearer ", "/v1", openai_requests, openai_variables, {}},
    {"google", "generativelanguage.googleapis.com", "", "x-goog-api-key", "", "/v1beta", google_requests, google_variables, {}},
    {"openrouter", "openrouter.ai", "", "authorization", "Bearer ", "/api/v1", openrouter_requests, openrouter_variables, {}},
    {"azure-openai-responses", "", "*.openai.azure.com", "api-key", "", "/openai/v1", azure_requests, azure_variables, {}},
    {"amazon-bedrock", "bedrock-runtime.us-east-1.amazonaws.com", "bedrock-runtime.*.amazonaws.com", "authorization", "Bearer ", "",
     bedrock_requests, bedrock_variables, bedrock_set},
};

constexpr std::string_view setup_token = "sk-ant-oat"; // what pi looks for, too

bool is_resource_name(std::string_view text) noexcept
{
    constexpr std::string_view label_bytes = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
           text.find_first_not_of(label_bytes) == std::string_view::npos;
}

bool is_like(std::string_view host, std::string_view pattern) noexcept
{
    const std::size_t star = pattern.find('*');
    if (host.size() < pattern.size() || !host.starts_with(pattern.substr(0, star)) || !host.ends_with(pattern.substr(star + 1)))
        return false;
    return is_resource_name(host.substr(star, host.size() - pattern.size() + 1));
}

} // namespace

std::span<const Provider> providers_with_gate() noexcept
{
    return known_providers;
}

const Provider *find_provider(std::string_view name) noexcept
{
    const auto *found =
        std::find_if(std::begin(known_providers), std::end(known_providers), [&](const Provider &one) { return one.name == name; });
    return found == std::end(known_providers) ? nullptr : found;
}

ProviderHost host_of_provider(const Provider &provider, std::string_view of_policy)
{
    if (of_policy.empty() && provider.host.empty())
        return {"", "has a host for each customer, and none is named; name yours: " + std::string(provider.host_pattern)};
    if (of_policy.empty() || of_policy == provider.host) return {std::string(provider.host), std::nullopt};
    if (provider.host_pattern.empty())
        return {"", "is at " + std::string(provider.host) + ", and its key goes to no other host; leave the host out"};
    if (!is_like(of_policy, provider.host_pattern))
        return {"", "has hosts like " + std::string(provider.host_pattern) + ", and its key goes to no other"};
    return {std::string(of_policy), std::nullopt};
}

KeyForm form_of_key(const Provider &provider, std::string_view key)
{
    if (provider.name == "anthropic" && key.starts_with(setup_token))
        return {"authorization", "Bearer ", std::string(setup_token) + "-" + std::string(key_placeholder)};
    return {provider.header, provider.prefix, std::string(key_placeholder)};
}

} // namespace pi_agent
