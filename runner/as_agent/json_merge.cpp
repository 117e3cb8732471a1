// Merges JSON documents, keeping numbers as they were written.
#include "runner/as_agent/writer.hpp"

#include <cstdlib>

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

std::size_t end_of_text(std::string_view text, std::size_t at)
{
    for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
    return std::min(at + 1, text.size());
}

// Blanks comments and the comma before a closing bracket, and keeps every other byte where it is, so that places in messages stay right.
std::string without_comments(std::string text)
{
    std::size_t comma = std::string::npos; // the last one, while only blanks follow it
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char byte = text[at];
        if (byte == '"') {
            at = end_of_text(text, at) - 1;
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

// Half of a pair of escapes (RFC 8259, 8.2) is one that node takes and the library does not. U+FFFD stands for it, as where node writes
// text; every byte keeps its place.
std::string with_whole_pairs(std::string text)
{
    const auto unit_at = [&](std::size_t at) { // of "\u1234"; 0 for anything else
        const bool is_escape = text.compare(at, 2, "\\u") == 0 && at + 6 <= text.size();
        return is_escape ? to_number<unsigned>(std::string_view(text).substr(at + 2, 4), 16).value_or(0) : 0;
    };
    const auto is_half = [](unsigned unit, unsigned first) { return unit >= first && unit < first + 0x400; };
    for (std::size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
        const unsigned unit = unit_at(at);
        const bool is_pair = is_half(unit, 0xD800) && at + 6 < text.size() && is_half(unit_at(at + 6), 0xDC00);
        if (!is_pair && (is_half(unit, 0xD800) || is_half(unit, 0xDC00))) text.replace(at, 6, "\\ufffd");
        at += is_pair ? 12 : 2; // what follows a backslash does not begin an escape
    }
    return text;
}

constexpr std::string_view mark = "\\u0000number "; // as JSON writes it; nothing but a number follows it
constexpr std::string_view mark_inside{"\0number ", 8};
constexpr std::string_view number_bytes = "+-.0123456789eE";
constexpr std::size_t exact_digits = 18;

// As defined in RFC 8259.
bool is_number(std::string_view text)
{
    std::size_t at = text.starts_with('-') ? 1 : 0;
    const auto take = [&](std::string_view any) { return at < text.size() && any.find(text[at]) != std::string_view::npos && ++at > 0; };
    const auto take_digits = [&] {
        const std::size_t begin = std::exchange(at, std::min(text.find_first_not_of("0123456789", at), text.size()));
        return at > begin;
    };
    if (!take("0") && !take_digits()) return false;
    if (take(".") && !take_digits()) return false;
    if (take("eE")) {
        take("+-");
        if (!take_digits()) return false;
    }
    return at == text.size();
}

bool is_exact(std::string_view number)
{
    return number != "-0" && number.size() <= exact_digits && number.find_first_of(".eE") == std::string_view::npos;
}

// The number that a marked text stands for, or "".
std::string number_of(const nlohmann::json &value)
{
    if (value.is_number()) return value.dump();
    if (!value.is_string()) return "";
    const auto &text = value.get_ref<const std::string &>();
    return text.starts_with(mark_inside) && is_number(text.substr(mark_inside.size())) ? text.substr(mark_inside.size()) : "";
}

// Reads on until the first problem. Not every exception of the library says where it is.
std::size_t place_of_problem(const std::string &text)
{
    struct Reader : nlohmann::json_sax<nlohmann::json> {
        std::size_t place = 1; // counts from 1
        bool null() override { return true; }
        bool boolean(bool) override { return true; }
        bool number_integer(number_integer_t) override { return true; }
        bool number_unsigned(number_unsigned_t) override { return true; }
        bool number_float(number_float_t, const string_t &) override { return true; }
        bool string(string_t &) override { return true; }
        bool binary(binary_t &) override { return true; }
        bool start_object(std::size_t) override { return true; }
        bool key(string_t &) override { return true; }
        bool end_object() override { return true; }
        bool start_array(std::size_t) override { return true; }
        bool end_array() override { return true; }
        bool parse_error(std::size_t at, const std::string &, const nlohmann::json::exception &) override
        {
            place = at;
            return false;
        }
    } reader;
    nlohmann::json::sax_parse(text, &reader);
    return reader.place;
}

} // namespace

nlohmann::json parse_json_object(const std::string &text, const std::string &name, JsonSyntax syntax)
{
    const std::string plain = with_whole_pairs(syntax == JsonSyntax::strict ? text : without_comments(text));
    if (nests_deeper(plain, merge_depth_limit))
        throw Failure(FailureKind::user_configuration,
                      name + ": it is nested deeper than " + std::to_string(merge_depth_limit) + " levels");
    const auto refuse_at = [&](std::size_t byte) {
        throw Failure(FailureKind::user_configuration, name + ":" + place_in(text, byte) + ": this is not valid JSON; correct it");
    };
    const std::size_t nul = plain.find('\0');
    if (nul != std::string::npos) refuse_at(nul + 1); // the library takes it for the end, whatever follows
    const MarkedNumbers marked = mark_numbers(plain);
    nlohmann::json document;
    try {
        document = nlohmann::json::parse(marked.text);
    } catch (const nlohmann::json::exception &) { // out_of_range for what begins like a number that is too large, as 1e9991e
        refuse_at(marked.original(place_of_problem(marked.text)));
    }
    if (!document.is_object())
        throw Failure(FailureKind::user_configuration, name + ":1:1: the top level must be an object, {…}; correct it");
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

std::size_t MarkedNumbers::original(std::size_t byte) const
{
    std::size_t more = 0;
    for (const auto &[after, count] : added)
        if (after < byte) more += count;
    return byte - std::min(more, byte);
}

MarkedNumbers mark_numbers(const std::string &text)
{
    MarkedNumbers marked;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at + 1;
        if (text[at] == '"') end = end_of_text(text, at);
        const bool begins = text[at] == '-' || (text[at] >= '0' && text[at] <= '9');
        if (begins) end = std::min(text.find_first_not_of(number_bytes, at), text.size());
        const std::string_view token = std::string_view(text).substr(at, end - at);
        if (begins && is_number(token) && !is_exact(token)) {
            marked.text.append(1, '"').append(mark).append(token).append(1, '"');
            marked.added.emplace_back(marked.text.size() - 1, mark.size() + 2);
        } else {
            marked.text.append(token);
        }
        at = end;
    }
    return marked;
}

std::string dump_with_numbers(const nlohmann::json &document, int indent)
{
    const std::string dumped = document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
    std::string text;
    for (std::size_t at = 0; at < dumped.size();) {
        std::size_t end = at + 1;
        if (dumped[at] == '"') end = end_of_text(dumped, at);
        const std::string_view token = std::string_view(dumped).substr(at, end - at);
        const bool is_marked = token.size() > mark.size() + 2 && token.substr(1, mark.size()) == mark;
        const std::string_view number = is_marked ? token.substr(mark.size() + 1, token.size() - mark.size() - 2) : std::string_view();
        text.append(is_number(number) ? number : token);
        at = end;
    }
    return text;
}

bool are_same_values(const nlohmann::json &one, const nlohmann::json &other)
{
    if (one == other) return true;
    const std::string first = number_of(one);
    const std::string second = number_of(other);
    return !first.empty() && !second.empty() && std::strtod(first.c_str(), nullptr) == std::strtod(second.c_str(), nullptr);
}

} // namespace pi_agent
