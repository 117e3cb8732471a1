// Which environment variables a policy may set, and which it should not.
#include "common/policy/policy_env.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

constexpr std::string_view own_names =
    "HOME USER LOGNAME SHELL PATH TMPDIR XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME PIP_BREAK_SYSTEM_PACKAGES "
    "PYTHONUSERBASE NPM_CONFIG_GLOBALCONFIG YARN_PREFIX GOPATH GOBIN CARGO_HOME RUSTUP_HOME NODE_COMPILE_CACHE PI_CODING_AGENT_DIR "
    "SANDBOX_RUNTIME BASH_ENV";
constexpr std::string_view start_up_names = "GLIBC_TUNABLES ENV";
// An administrator may have a reason to set these. npm reads its own in any case of letters.
constexpr std::string_view interpreter_names =
    "NODE_OPTIONS NODE_PATH PERL5OPT PERL5LIB PYTHONSTARTUP PYTHONPATH PYTHONHOME RUBYOPT RUBYLIB";
constexpr std::string_view secret_words = "KEY TOKEN SECRET SECRETS PASSWORD PASSWD PASS PASSPHRASE CREDENTIAL CREDENTIALS";

// npm's "npm_config_globalconfig" is its NPM_CONFIG_GLOBALCONFIG too.
std::string upper(std::string_view text)
{
    std::string result(text);
    for (char &byte : result)
        if (byte >= 'a' && byte <= 'z') byte = static_cast<char>(byte - 'a' + 'A');
    return result;
}

bool is_own_name(const std::string &name)
{
    return has_word(own_names, name) || name.starts_with("PI_AGENT_") || upper(name) == "NPM_CONFIG_GLOBALCONFIG";
}

// API_KEY, githubToken and DB_PASSWORD_2 do; KEYBOARD and MONKEY do not.
bool has_secret_word(std::string_view name)
{
    std::string word;
    bool was_lower = false;
    for (const char byte : name) {
        const bool lower = byte >= 'a' && byte <= 'z';
        const bool upper = byte >= 'A' && byte <= 'Z';
        if ((!lower && !upper) || (upper && was_lower)) {
            if (has_word(secret_words, word)) return true;
            word.clear();
        }
        if (lower || upper) word += static_cast<char>(lower ? byte - 'a' + 'A' : byte);
        was_lower = lower;
    }
    return has_word(secret_words, word) || has_word(secret_words, word.starts_with("API") ? std::string_view(word).substr(3) : word);
}

// "scheme://user:password@host"
bool has_password_in_url(std::string_view value) noexcept
{
    const auto scheme = value.find("://");
    if (scheme == std::string_view::npos) return false;
    const auto authority = value.substr(scheme + 3, value.find_first_of("/?#", scheme + 3) - (scheme + 3));
    const auto at = authority.rfind('@');
    return at != std::string_view::npos && authority.substr(0, at).find(':') != std::string_view::npos;
}

// Providers whose variable has their name: ant-ling has ANT_LING_API_KEY.
constexpr std::string_view plain_providers =
    "anthropic ant-ling baseten cerebras deepseek fireworks groq meta minimax minimax-cn mistral "
    "nvidia openai opencode openrouter qwen-token-plan qwen-token-plan-cn radius together xai xiaomi "
    "xiaomi-token-plan-ams xiaomi-token-plan-cn xiaomi-token-plan-sgp zai zai-coding-cn";
// The others. Not GH_TOKEN and GITHUB_TOKEN, which old versions took for Copilot: they are set for other tools.
constexpr std::pair<const char *, const char *> key_variables[] = {
    {"AI_GATEWAY_API_KEY", "vercel-ai-gateway"},
    {"ANTHROPIC_OAUTH_TOKEN", "anthropic"},
    {"AZURE_OPENAI_API_KEY", "azure-openai-responses"},
    {"CLOUDFLARE_API_KEY", "cloudflare-ai-gateway"},
    {"CLOUDFLARE_API_KEY", "cloudflare-workers-ai"},
    {"COPILOT_GITHUB_TOKEN", "github-copilot"},
    {"GEMINI_API_KEY", "google"},
    {"GOOGLE_CLOUD_API_KEY", "google-vertex"},
    {"HF_TOKEN", "huggingface"},
    {"KIMI_API_KEY", "kimi-coding"},
    {"MOONSHOT_API_KEY", "moonshotai"},
    {"MOONSHOT_API_KEY", "moonshotai-cn"},
    {"OPENCODE_API_KEY", "opencode-go"},
    {"QWEN_TOKEN_PLAN_API_KEY", "qwen-token-plan-individual"},
};

std::string key_variable_of(std::string_view provider)
{
    std::string name = upper(provider);
    std::replace(name.begin(), name.end(), '-', '_');
    return name + "_API_KEY";
}

constexpr const char *for_everybody = "move it into a file that only root can read, and name that file in env_files";
constexpr const char *for_one_user =
    "move it into a file of that user's own (host_env_files, ~/.pi/agent/env for one); env_files is for everybody";

void find_in(const Environment &env, const EnvironmentPlaces &places, const std::string &key, const char *remedy,
             std::vector<Diagnostic> &found)
{
    for (const auto &[name, value] : env) {
        const bool by_name = has_secret_word(name);
        if (!by_name && !has_password_in_url(value)) continue;
        const auto place = places.find(name);
        found.push_back({place == places.end() ? Position{} : place->second, key + "." + name,
                         by_name ? "looks like a secret, and every user of this host can read the policy"
                                 : "holds a password, and every user of this host can read the policy",
                         remedy});
    }
}

} // namespace

bool is_variable_name(std::string_view name) noexcept
{
    const auto is_start = [](char byte) { return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || byte == '_'; };
    if (name.empty() || !is_start(name.front())) return false;
    return std::all_of(name.begin(), name.end(), [&](char byte) { return is_start(byte) || (byte >= '0' && byte <= '9'); });
}

void read_env(const PolicyValue &section, Environment &env, EnvironmentPlaces &places)
{
    const auto entries = read_entries(section);
    if (!entries) return;
    for (const auto &value : *entries) {
        const auto &name = value.yaml->key;
        if (const auto problem = problem_of_env_name(name)) {
            value.at_its_name().report(*problem, "remove it");
        } else if (auto text = read_text(value)) {
            env[name] = std::move(*text);
            places[name] = value.yaml->where;
        }
    }
}

std::optional<std::string> problem_of_env_name(const std::string &name)
{
    if (!is_variable_name(name)) return "is not a variable name";
    if (is_own_name(name)) return "is set by pi-agent itself";
    if (has_word(start_up_names, name) || name.starts_with("LD_")) return "changes programs before they begin";
    return std::nullopt;
}

std::optional<std::string> problem_of_host_env_name(const std::string &name)
{
    if (has_word(interpreter_names, name)) return "changes programs before they begin, and is the administrator's to set";
    return problem_of_env_name(name);
}

bool looks_secret(const std::string &name, const std::string &value)
{
    return has_secret_word(name) || has_password_in_url(value);
}

std::vector<std::string> providers_of_key(std::string_view variable)
{
    std::vector<std::string> providers;
    for (const auto &[name, provider] : key_variables)
        if (name == variable) providers.emplace_back(provider);
    for (const auto provider : split(plain_providers, ' '))
        if (key_variable_of(provider) == variable) providers.emplace_back(provider);
    return providers;
}

std::optional<std::string> key_variable_of_provider(std::string_view provider)
{
    if (has_word(plain_providers, provider)) return key_variable_of(provider);
    for (const auto &[name, other] : key_variables)
        if (other == provider) return name;
    return std::nullopt;
}

std::vector<Diagnostic> find_exposed_secrets(const Policy &policy)
{
    std::vector<Diagnostic> found;
    find_in(policy.env, policy.env_where, "env", for_everybody, found);
    for (const auto &entry : policy.users)
        find_in(entry.env, entry.env_where, entry_key(entry) + ".env", for_one_user, found);
    return found;
}

} // namespace pi_agent
