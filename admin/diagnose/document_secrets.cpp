// Looking for secrets in JSON.
#include "admin/diagnose/document_secrets.hpp"

#include "common/policy/policy_env.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

using Plain = nlohmann::json;

std::string lower(std::string text)
{
    for (char &byte : text)
        if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
    return text;
}

// A header that says who asks: "Authorization", "Proxy-Authorization", "Cookie".
bool is_authorising(const std::string &name)
{
    const std::string header = lower(name);
    return header.ends_with("authorization") || header == "cookie";
}

class SecretSearch {
public:
    explicit SecretSearch(const std::set<std::string> &variables) : variables_(variables) {}

    [[nodiscard]] std::string in(const Plain &data, const std::string &path) const
    {
        if (!data.is_structured()) return {};
        const Plain *before = nullptr; // in a list
        for (const auto &[key, value] : data.items()) {
            std::string below = path + "." + key;
            const bool is_secret = value.is_string() && (data.is_object() ? is_secret_value(key, value.get<std::string>())
                                                                          : is_secret_word(before, value.get<std::string>()));
            if (is_secret) return below;
            if (auto found = in(value, below); !found.empty()) return found;
            before = &value;
        }
        return {};
    }

private:
    // NAME, $NAME or ${NAME}, after "Bearer" or the like, too.
    [[nodiscard]] bool is_reference(std::string text) const
    {
        for (const char *scheme : {"bearer ", "basic ", "token "})
            if (lower(text).starts_with(scheme)) text = text.substr(text.find(' ') + 1);
        if (text.starts_with("${") && text.ends_with("}"))
            text = text.substr(2, text.size() - 3);
        else if (text.starts_with("$"))
            text = text.substr(1);
        return text.empty() || lower(text) == "none" || variables_.contains(text);
    }

    [[nodiscard]] bool is_secret_value(const std::string &name, const std::string &value) const
    {
        const bool authorises = is_authorising(name) || lower(value).starts_with("bearer ") || lower(value).starts_with("basic ");
        return (authorises || looks_secret(name, value)) && !is_reference(value);
    }

    // "--token=x", "x" after "--token", "Authorization: x"; and what is one by itself.
    [[nodiscard]] bool is_secret_word(const Plain *before, const std::string &word) const
    {
        if (before != nullptr && before->is_string()) {
            const auto option = before->get<std::string>();
            if (option.starts_with("-") && option.find('=') == std::string::npos && is_secret_value(option, word)) return true;
        }
        for (const char *divider : {"=", ": "}) {
            const auto at = word.find(divider);
            if (at != std::string::npos && is_secret_value(word.substr(0, at), word.substr(at + std::string(divider).size()))) return true;
        }
        return is_secret_value("", word);
    }

    const std::set<std::string> &variables_;
};

} // namespace

std::string secret_in_document(const std::string &document, const std::string &path, const std::set<std::string> &variables)
{
    return SecretSearch(variables).in(Plain::parse(document), path);
}

} // namespace pi_agent
