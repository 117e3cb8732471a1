// The table of key variables.
#include "runner/plan/provider_keys.hpp"

#include <array>
#include <string_view>

namespace pi_agent {

namespace {

struct KeyVariable {
    std::string_view variable;
    std::string_view provider;
};

// Not GH_TOKEN and GITHUB_TOKEN, which old versions took for Copilot: they are set for other tools.
constexpr std::array key_variables = {
    KeyVariable{"AI_GATEWAY_API_KEY", "vercel-ai-gateway"},
    KeyVariable{"ANTHROPIC_API_KEY", "anthropic"},
    KeyVariable{"ANTHROPIC_OAUTH_TOKEN", "anthropic"},
    KeyVariable{"ANT_LING_API_KEY", "ant-ling"},
    KeyVariable{"AZURE_OPENAI_API_KEY", "azure-openai-responses"},
    KeyVariable{"BASETEN_API_KEY", "baseten"},
    KeyVariable{"CEREBRAS_API_KEY", "cerebras"},
    KeyVariable{"CLOUDFLARE_API_KEY", "cloudflare-ai-gateway"},
    KeyVariable{"CLOUDFLARE_API_KEY", "cloudflare-workers-ai"},
    KeyVariable{"COPILOT_GITHUB_TOKEN", "github-copilot"},
    KeyVariable{"DEEPSEEK_API_KEY", "deepseek"},
    KeyVariable{"FIREWORKS_API_KEY", "fireworks"},
    KeyVariable{"GEMINI_API_KEY", "google"},
    KeyVariable{"GOOGLE_CLOUD_API_KEY", "google-vertex"},
    KeyVariable{"GROQ_API_KEY", "groq"},
    KeyVariable{"HF_TOKEN", "huggingface"},
    KeyVariable{"KIMI_API_KEY", "kimi-coding"},
    KeyVariable{"META_API_KEY", "meta"},
    KeyVariable{"MINIMAX_API_KEY", "minimax"},
    KeyVariable{"MINIMAX_CN_API_KEY", "minimax-cn"},
    KeyVariable{"MISTRAL_API_KEY", "mistral"},
    KeyVariable{"MOONSHOT_API_KEY", "moonshotai"},
    KeyVariable{"MOONSHOT_API_KEY", "moonshotai-cn"},
    KeyVariable{"NVIDIA_API_KEY", "nvidia"},
    KeyVariable{"OPENAI_API_KEY", "openai"},
    KeyVariable{"OPENCODE_API_KEY", "opencode"},
    KeyVariable{"OPENCODE_API_KEY", "opencode-go"},
    KeyVariable{"OPENROUTER_API_KEY", "openrouter"},
    KeyVariable{"QWEN_TOKEN_PLAN_API_KEY", "qwen-token-plan"},
    KeyVariable{"QWEN_TOKEN_PLAN_API_KEY", "qwen-token-plan-individual"},
    KeyVariable{"QWEN_TOKEN_PLAN_CN_API_KEY", "qwen-token-plan-cn"},
    KeyVariable{"RADIUS_API_KEY", "radius"},
    KeyVariable{"TOGETHER_API_KEY", "together"},
    KeyVariable{"XAI_API_KEY", "xai"},
    KeyVariable{"XIAOMI_API_KEY", "xiaomi"},
    KeyVariable{"XIAOMI_TOKEN_PLAN_AMS_API_KEY", "xiaomi-token-plan-ams"},
    KeyVariable{"XIAOMI_TOKEN_PLAN_CN_API_KEY", "xiaomi-token-plan-cn"},
    KeyVariable{"XIAOMI_TOKEN_PLAN_SGP_API_KEY", "xiaomi-token-plan-sgp"},
    KeyVariable{"ZAI_API_KEY", "zai"},
    KeyVariable{"ZAI_CODING_CN_API_KEY", "zai-coding-cn"},
};

} // namespace

std::set<std::string> providers_with_keys(const Environment &env)
{
    std::set<std::string> providers;
    for (const auto &known : key_variables) {
        const auto found = env.find(std::string(known.variable));
        if (found != env.end() && !found->second.empty()) providers.emplace(known.provider);
    }
    return providers;
}

} // namespace pi_agent
