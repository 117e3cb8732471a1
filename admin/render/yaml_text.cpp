// yaml-cpp's emitter, which writes and reads nothing.
#include "admin/render/yaml_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

namespace pi_agent {

namespace {

using Json = nlohmann::ordered_json;

// In every version of YAML that a reader may follow.
bool means_something_else(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
    constexpr std::array<std::string_view, 9> words = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
    return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_plain(const std::string &text)
{
    const auto is_letter = [](char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); };
    const auto is_harmless = [&](char byte) {
        return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '/' || byte == '.' || byte == '_' || byte == '-';
    };
    return !text.empty() && (is_letter(text[0]) || text[0] == '/') && std::all_of(text.begin(), text.end(), is_harmless) &&
           !means_something_else(text);
}

void write(YAML::Emitter &emitter, const Json &data)
{
    if (data.is_object()) {
        emitter << YAML::BeginMap;
        for (const auto &[key, value] : data.items()) {
            emitter << YAML::Key;
            write(emitter, Json(key));
            emitter << YAML::Value;
            write(emitter, value);
        }
        emitter << YAML::EndMap;
    } else if (data.is_array()) {
        emitter << YAML::BeginSeq;
        for (const auto &item : data)
            write(emitter, item);
        emitter << YAML::EndSeq;
    } else if (data.is_string()) {
        const auto text = data.get<std::string>();
        if (!is_plain(text)) emitter << YAML::DoubleQuoted;
        emitter << text;
    } else {
        emitter << data.dump(); // numbers, true, false and null are the same
    }
}

} // namespace

std::string to_yaml(const Json &data)
{
    YAML::Emitter emitter;
    write(emitter, data);
    return std::string(emitter.c_str()) + "\n";
}

} // namespace pi_agent
