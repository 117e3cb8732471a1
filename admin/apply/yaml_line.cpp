// A text as one word of YAML, a value as one line, and a value's place in a tree.
#include "admin/apply/yaml_line.hpp"

#include "common/base/text.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

// Other readers take these for booleans.
constexpr std::string_view ambiguous_words = "y Y yes Yes YES n N no No NO on On ON off Off OFF";
constexpr std::string_view special_in_brackets = ",?[]{}"; // elsewhere a plain text may have them

bool is_plain_word(const std::string &text)
{
    const auto is_letter = [](char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); };
    const bool begins = !text.empty() && (is_letter(text[0]) || text[0] == '_' || text[0] == '/' || text.starts_with("~/"));
    YamlNode scalar;
    scalar.kind = YamlNode::Kind::scalar;
    scalar.text = text;
    return begins && is_made_of(text, "/~_-.@") && meaning_of_scalar(scalar) == ScalarMeaning::text && !has_word(ambiguous_words, text);
}

bool is_shown_as_it_is(std::string text)
{
    std::erase(text, '\\'); // stands for itself in single quotes
    return escape_for_display(text) == text;
}

std::string in_quotes(const std::string &text)
{
    std::string inside;
    for (const char byte : text)
        inside += byte == '\'' ? std::string("''") : std::string(1, byte);
    return "'" + inside + "'";
}

// In JSON's quotes if it needs an escape.
std::string text_line(const YamlNode &scalar)
{
    if (!scalar.quoted && scalar.text.find_first_of(special_in_brackets) == std::string::npos) return scalar.text;
    if (is_plain_word(scalar.text)) return scalar.text;
    return is_shown_as_it_is(scalar.text) ? in_quotes(scalar.text) : nlohmann::json(scalar.text).dump();
}

} // namespace

std::string yaml_word(const std::string &text)
{
    if (is_plain_word(text)) return text;
    if (!is_shown_as_it_is(text))
        throw Failure(ExitStatus::usage, "a policy takes this as no name and no value: " + escape_for_display(text));
    return in_quotes(text);
}

std::string yaml_line(const YamlNode &node)
{
    std::string text;
    switch (node.kind) {
    case YamlNode::Kind::null:
        return "null";
    case YamlNode::Kind::scalar:
        return text_line(node);
    case YamlNode::Kind::sequence:
        for (const auto &item : node.items)
            text += (text.empty() ? "" : ", ") + yaml_line(item);
        return "[" + text + "]";
    case YamlNode::Kind::mapping:
        for (const auto &entry : node.entries)
            text += (text.empty() ? "" : ", ") + yaml_word(entry.key) + ": " + yaml_line(entry.value);
        return "{" + text + "}";
    }
    return text;
}

std::string yaml_lines(const YamlNode &mapping)
{
    std::string text;
    for (const auto &entry : mapping.entries)
        text += yaml_word(entry.key) + ": " + yaml_line(entry.value) + "\n";
    return text;
}

YamlNode parse_or_throw(const std::string &file, const std::string &text)
{
    Problems problems;
    auto root = parse_yaml(file, text, problems);
    problems.throw_if_any();
    return std::move(*root);
}

const YamlNode *find_node(const YamlNode &root, const KeyPath &path)
{
    const YamlNode *node = &root;
    for (const auto &key : path) {
        const auto entry = std::find_if(node->entries.begin(), node->entries.end(), [&](const YamlEntry &each) { return each.key == key; });
        if (entry == node->entries.end()) return nullptr;
        node = &entry->value;
    }
    return node;
}

void put_node(YamlNode &root, const KeyPath &path, const YamlNode &value)
{
    YamlNode *node = &root;
    for (const auto &key : path) {
        if (node->kind == YamlNode::Kind::null) node->kind = YamlNode::Kind::mapping;
        if (node->kind != YamlNode::Kind::mapping)
            throw Failure(ExitStatus::configuration,
                          to_string(node->where) + ": is " + describe(*node) + ", and holds no keys; set it as a whole");
        auto entry = std::find_if(node->entries.begin(), node->entries.end(), [&](const YamlEntry &each) { return each.key == key; });
        if (entry == node->entries.end()) entry = node->entries.insert(entry, {key, {}, {}});
        node = &entry->value;
    }
    *node = value;
}

} // namespace pi_agent
