// Looks for ends of values, lines and comments as YAML has them.
#include "admin/host/yaml_text.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

constexpr std::string_view yaml_blanks = " \t\r";

bool is_one_of(char byte, std::string_view bytes)
{
    return bytes.find(byte) != std::string_view::npos;
}

std::size_t find_colon(const YamlText &text, const YamlEntry &entry)
{
    std::size_t index = text.index_of(entry.where);
    if (is_one_of(text.at(index), "'\"")) index = text.skip_blanks(text.skip_quoted(index));
    while (text.at(index) != '\n' && !(text.at(index) == ':' && is_one_of(text.at(index + 1), " \t\r\n,[]{}'\"")))
        ++index;
    if (text.at(index) != ':') refuse_change(entry.where, "this key is written in a way that cannot be changed here");
    return index + 1;
}

// Behind the last line of an entry whose lines are indented deeper than its key; a list may be as deep as the key.
std::size_t end_of_block(const YamlText &text, const YamlEntry &entry, std::size_t from)
{
    const auto indentation = static_cast<std::size_t>(entry.where.column - 1);
    std::size_t end = text.begin_of_next_line(from);
    for (std::size_t line = end; line < text.size(); line = text.begin_of_next_line(line)) {
        const std::size_t first = text.skip_blanks(line);
        if (is_one_of(text.at(first), "\n#")) continue; // says nothing
        const bool is_item =
            text.at(first) == '-' && is_one_of(text.at(first + 1), " \t\r\n") && entry.value.kind == YamlNode::Kind::sequence;
        if (first - line < indentation + (is_item ? 0 : 1)) break;
        end = text.begin_of_next_line(line);
    }
    return end;
}

} // namespace

std::size_t YamlText::index_of(const Position &where) const
{
    std::size_t index = places_.index_of(where.line - 1, 0);
    for (int column = 1; column < where.column && index < text_.size(); ++column)
        index += std::max<std::size_t>(decode_utf8(text_.substr(index)).length, 1);
    return index;
}

bool YamlText::has_blank(std::size_t index) const noexcept
{
    return is_one_of(at(index), yaml_blanks);
}

std::size_t YamlText::skip_blanks(std::size_t index) const noexcept
{
    return std::min(text_.find_first_not_of(yaml_blanks, index), text_.size());
}

std::size_t YamlText::begin_of_line(std::size_t index) const noexcept
{
    return index == 0 ? 0 : text_.rfind('\n', index - 1) + 1; // npos + 1 is 0
}

std::size_t YamlText::begin_of_next_line(std::size_t index) const noexcept
{
    const std::size_t end = text_.find('\n', index);
    return end == std::string_view::npos ? text_.size() : end + 1;
}

bool YamlText::begins_comment(std::size_t index) const noexcept
{
    return at(index) == '#' && (index == 0 || has_blank(index - 1) || at(index - 1) == '\n');
}

bool YamlText::begins_quoted(std::size_t index) const noexcept
{
    return is_one_of(at(index), "'\"") && (index == 0 || has_blank(index - 1) || is_one_of(at(index - 1), "\n[{,:"));
}

bool YamlText::has_comment(std::size_t begin, std::size_t end) const
{
    for (std::size_t index = begin; index < end; ++index) {
        if (begins_comment(index)) return true;
        if (begins_quoted(index)) index = skip_quoted(index) - 1;
    }
    return false;
}

std::size_t YamlText::skip_brackets(std::size_t index) const
{
    int depth = 0;
    for (; index < text_.size(); ++index) {
        if (begins_comment(index)) {
            index = begin_of_next_line(index) - 1;
        } else if (begins_quoted(index)) {
            index = skip_quoted(index) - 1;
        } else if (is_one_of(at(index), "[{")) {
            ++depth;
        } else if (is_one_of(at(index), "]}") && --depth == 0) {
            return index + 1;
        }
    }
    return text_.size();
}

std::size_t YamlText::skip_value(std::size_t index, bool in_brackets) const
{
    if (is_one_of(at(index), "'\"")) return skip_quoted(index);
    if (is_one_of(at(index), "[{")) return skip_brackets(index);
    std::size_t end = index;
    while (at(end) != '\n' && !begins_comment(end) && !(in_brackets && is_one_of(at(end), ",]}")))
        ++end;
    while (end > index && has_blank(end - 1))
        --end;
    return end;
}

EntryPlace place_of(const YamlText &text, const YamlNode &mapping, const YamlEntry &entry)
{
    EntryPlace place;
    place.begin = text.index_of(entry.where);
    place.in_brackets = text.at(text.index_of(mapping.where)) == '{';
    place.colon = find_colon(text, entry);
    place.value = text.skip_blanks(place.colon);
    const char first = text.at(place.value);
    place.is_inline = !text.begins_comment(place.value) && !is_one_of(first, place.in_brackets ? "\n,}" : "\n|>");
    const std::size_t behind = place.is_inline ? text.skip_value(place.value, place.in_brackets) : place.colon;
    place.end = place.in_brackets ? behind : end_of_block(text, entry, behind);
    return place;
}

void refuse_change(const Position &where, const std::string &why)
{
    throw Failure(ExitStatus::configuration, to_string(where) + ": " + why + "; change it with: sudo pi-agentctl edit");
}

} // namespace pi_agent
