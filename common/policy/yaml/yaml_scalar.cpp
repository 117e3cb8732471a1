// What a plain YAML scalar means, after YAML 1.2's core schema.
#include "common/policy/yaml/yaml_tree.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words)
{
    return std::find(words.begin(), words.end(), text) != words.end();
}

// Takes characters of `set` off the front and returns how many.
std::size_t skip(std::string_view &text, std::string_view set)
{
    const auto count = std::min(text.find_first_not_of(set), text.size());
    text.remove_prefix(count);
    return count;
}

constexpr std::string_view digits = "0123456789";

// Takes one character of `set` off the front.
bool skip_one(std::string_view &text, std::string_view set)
{
    if (text.empty() || set.find(text.front()) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
}

bool is_prefixed_integer(std::string_view text, std::string_view prefix, std::string_view set)
{
    if (text.substr(0, prefix.size()) != prefix) return false;
    text.remove_prefix(prefix.size());
    return skip(text, set) > 0 && text.empty();
}

// [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ([eE][-+]?[0-9]+)?   and how much of it JSON would write the same way.
ScalarMeaning meaning_of_number(std::string_view text)
{
    const bool plus = !text.empty() && text.front() == '+';
    skip_one(text, "+-");
    const bool leading_zero = text.size() > 1 && text[0] == '0' && digits.find(text[1]) != std::string_view::npos;
    const auto whole = skip(text, digits);
    const bool point = skip_one(text, ".");
    const auto fraction = point ? skip(text, digits) : 0;
    if (whole + fraction == 0) return ScalarMeaning::text;
    const bool exponent = skip_one(text, "eE");
    if (exponent) {
        skip_one(text, "+-");
        if (skip(text, digits) == 0) return ScalarMeaning::text;
    }
    if (!text.empty()) return ScalarMeaning::text;
    if (plus || leading_zero || whole == 0 || (point && fraction == 0)) return ScalarMeaning::odd;
    return point || exponent ? ScalarMeaning::real : ScalarMeaning::integer;
}

ScalarMeaning meaning_of_plain(std::string_view text)
{
    if (text.empty() || text == "null") return ScalarMeaning::null;
    if (is_one_of(text, {"true", "false"})) return ScalarMeaning::boolean;
    if (is_one_of(text, {"~", "Null", "NULL", "True", "TRUE", "False", "FALSE"})) return ScalarMeaning::odd;
    if (is_prefixed_integer(text, "0x", "0123456789abcdefABCDEF") || is_prefixed_integer(text, "0o", "01234567")) return ScalarMeaning::odd;
    auto unsigned_text = text;
    skip_one(unsigned_text, "+-");
    if (is_one_of(unsigned_text, {".inf", ".Inf", ".INF"}) || is_one_of(text, {".nan", ".NaN", ".NAN"})) return ScalarMeaning::odd;
    return meaning_of_number(text);
}

} // namespace

ScalarMeaning meaning_of_scalar(const YamlNode &scalar)
{
    return scalar.quoted ? ScalarMeaning::text : meaning_of_plain(scalar.text);
}

std::string describe(const YamlNode &node)
{
    switch (node.kind) {
    case YamlNode::Kind::null:
        return "nothing";
    case YamlNode::Kind::sequence:
        return "a list";
    case YamlNode::Kind::mapping:
        return "a mapping";
    case YamlNode::Kind::scalar:
        break;
    }
    switch (meaning_of_scalar(node)) {
    case ScalarMeaning::boolean:
        return "the boolean " + node.text;
    case ScalarMeaning::integer:
    case ScalarMeaning::real:
        return "the number " + node.text;
    case ScalarMeaning::odd:
        return quote(node.text) + ", which YAML readers understand differently";
    case ScalarMeaning::null:
        return "nothing";
    case ScalarMeaning::text:
        break;
    }
    return "the text " + quote(node.text);
}

} // namespace pi_agent
