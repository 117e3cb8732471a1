// Parses a user's JSON with bounds, and merges managed values over it.
#include "runner/plan/json_merge.hpp"

#include "common/base/error.hpp"
#include "common/base/json_depth.hpp"
#include "runner/plan/json_numbers.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

constexpr int merge_depth_limit = 128; // dumping and comparing recurse

std::string place_in(const std::string &text, std::size_t byte)
{
    const std::size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    const std::size_t newline = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const std::size_t column = newline == std::string::npos ? end + 1 : end - newline;
    return std::to_string(line) + ":" + std::to_string(column);
}

// Blanks comments and the comma before a closing bracket, and keeps every other byte where it is, so that places in messages stay right.
std::string without_comments(std::string text)
{
    std::size_t comma = std::string::npos; // the last one, while only blanks follow it
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char byte = text[at];
        if (byte == '"') {
            for (++at; at < text.size() && text[at] != '"'; ++at)
                if (text[at] == '\\') ++at;
            comma = std::string::npos;
        } else if (byte == '/' && at + 1 < text.size() && (text[at + 1] == '/' || text[at + 1] == '*')) {
            const bool is_line = text[at + 1] == '/';
            const std::size_t found = is_line ? text.find('\n', at) : text.find("*/", at + 2);
            if (!is_line && found == std::string::npos) return text; // the parser points at it
            const std::size_t end = found == std::string::npos ? text.size() : found + (is_line ? 0 : 2);
            std::replace_if(
                text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end),
                [](char inside) { return inside != '\n'; }, ' ');
            at = end - 1;
        } else if (byte == ',') {
            comma = at;
        } else if (byte == '}' || byte == ']') {
            if (comma != std::string::npos) text[comma] = ' ';
            comma = std::string::npos;
        } else if (byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n') {
            comma = std::string::npos;
        }
    }
    return text;
}

} // namespace

nlohmann::json parse_json_object(const std::string &text, const std::string &name, JsonSyntax syntax)
{
    const std::string &plain = syntax == JsonSyntax::strict ? text : without_comments(text);
    if (nests_deeper(plain, merge_depth_limit))
        throw Failure(ExitStatus::configuration, name + ": nested deeper than " + std::to_string(merge_depth_limit) + " levels");
    const auto refuse_at = [&](std::size_t byte) {
        throw Failure(ExitStatus::configuration, name + ":" + place_in(text, byte) + ": this is not valid JSON; correct it there");
    };
    const std::size_t nul = plain.find('\0');
    if (nul != std::string::npos) refuse_at(nul + 1); // to the library it is an end, whatever follows
    const MarkedNumbers marked = mark_numbers(plain);
    nlohmann::json document;
    try {
        document = nlohmann::json::parse(marked.text);
    } catch (const nlohmann::json::parse_error &error) {
        refuse_at(marked.original(error.byte));
    }
    if (!document.is_object()) throw Failure(ExitStatus::configuration, name + ":1:1: the top level must be an object, {…}; correct it");
    return document;
}

nlohmann::json merge_managed(nlohmann::json host, const nlohmann::json &managed)
{
    if (!host.is_object() || !managed.is_object()) return managed;
    for (const auto &[key, value] : managed.items()) {
        const auto found = host.find(key);
        host[key] = found == host.end() ? value : merge_managed(*found, value);
    }
    return host;
}

} // namespace pi_agent
