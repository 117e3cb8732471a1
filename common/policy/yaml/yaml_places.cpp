// The place of something in a policy, and what is wrong there.
#include "common/policy/yaml/yaml_places.hpp"

#include "common/base/problems.hpp"
#include "common/base/text.hpp"

#include <yaml-cpp/exceptions.h>

namespace pi_agent {

YamlPlaces::YamlPlaces(std::string file, std::string_view text) : file_(std::move(file)), text_(text), lines_{0}
{
    for (std::size_t index = 0; index < text.size(); ++index) {
        if (text[index] == '\n') lines_.push_back(index + 1);
        if ((static_cast<unsigned char>(text[index]) & 0xC0U) == 0x80U) continuations_.push_back(index);
    }
}

std::size_t YamlPlaces::index_of(int line, int column) const
{
    if (line < 0 || static_cast<std::size_t>(line) >= lines_.size()) return text_.size();
    return std::min(lines_[static_cast<std::size_t>(line)] + static_cast<std::size_t>(std::max(column, 0)), text_.size());
}

Position YamlPlaces::position_of(std::size_t index) const
{
    // This is the end of the last line, not the beginning of a missing next line.
    if (index >= text_.size()) index = !text_.empty() && text_.back() == '\n' ? text_.size() - 1 : text_.size();
    const auto line = std::upper_bound(lines_.begin(), lines_.end(), index) - 1;
    const auto before = [this](std::size_t byte) { return std::lower_bound(continuations_.begin(), continuations_.end(), byte); };
    const auto bytes = static_cast<std::ptrdiff_t>(index - *line);
    return {file_, static_cast<int>(line - lines_.begin()) + 1, static_cast<int>(bytes - (before(index) - before(*line))) + 1};
}

std::size_t YamlPlaces::find_quote(std::size_t index) const
{
    for (; index < text_.size(); ++index) {
        const char before = index == 0 ? '\n' : text_[index - 1];
        const bool blank_before = before == ' ' || before == '\t' || before == '\n';
        if (text_[index] == '#' && blank_before) {
            index = std::min(text_.find('\n', index), text_.size());
        } else if ((text_[index] == '\'' || text_[index] == '"') &&
                   (blank_before || std::string_view("[{,").find(before) != std::string_view::npos)) {
            return index;
        }
    }
    return std::string_view::npos;
}

std::size_t YamlPlaces::skip_quoted(std::size_t index) const
{
    const char quote = text_[index];
    for (++index; index < text_.size(); ++index) {
        const bool pair = index + 1 < text_.size() && (quote == '"' ? text_[index] == '\\' : text_.substr(index, 2) == "''");
        if (pair)
            ++index;
        else if (text_[index] == quote)
            return index + 1;
    }
    return text_.size();
}

namespace {

using namespace YAML::ErrorMsg;

std::string expected_in(const YamlPlaces &places, std::size_t open)
{
    const bool list = places.rest(open).front() == '[';
    return std::string(list ? "',' or ']' expected, in the list" : "',' or '}' expected, in the mapping") + " that begins at " +
           to_string(places.position_of(open));
}

YamlFault explain_quote(const YamlProgress &progress, const YamlPlaces &places, std::size_t index)
{
    const auto first = places.rest(progress.last).substr(0, 1);
    const auto quote = places.find_quote(first == "'" || first == "\"" ? places.skip_quoted(progress.last) : progress.last);
    return {places.position_of(quote == std::string_view::npos ? index : quote), "a quote that is never closed",
            "close it; within single quotes, a quote is written twice"};
}

} // namespace

YamlFault explain_yaml_error(const std::string &message, std::size_t index, const YamlProgress &progress, const YamlPlaces &places)
{
    const auto where = places.position_of(index);
    const auto rest = places.rest(index);
    const auto length = rest.empty() ? 0 : decode_utf8(rest).length;
    const auto found = rest.empty() || rest.front() == '\n' ? std::string("the end") : quote(rest.substr(0, length));
    if (message == DOC_IN_SCALAR || message == EOF_IN_SCALAR) return explain_quote(progress, places, index);
    // yaml-cpp 0.8 says which one, too.
    if (message.starts_with(UNKNOWN_ANCHOR) || message == ALIAS_NOT_FOUND || message == CHAR_IN_ALIAS || message == CHAR_IN_ANCHOR)
        return {where, "anchors and aliases (& and *) are not accepted", "write the value out, or put it in quotes"};
    if (message == UNKNOWN_TOKEN) return {where, "no value begins with " + found, "put it in quotes"};
    if (message == MAP_VALUE) {
        return {where, "a ':' that belongs to no key",
                "indent keys as their neighbours, with a ':' behind each; put a value with ': ' in it in quotes"};
    }
    if (message == END_OF_MAP || message == END_OF_SEQ) {
        return {where, std::string(message == END_OF_MAP ? "a key" : "'- ' and a value") + " expected, or the indentation of one above",
                "indent it as its neighbours, and look for a missing ':' or quote"};
    }
    if ((message == END_OF_MAP_FLOW || message == END_OF_SEQ_FLOW) && progress.open)
        return {where, expected_in(places, *progress.open) + ", found " + found, "close it, or put what belongs together in quotes"};
    if (message == FLOW_END && (rest.substr(0, 1) == "]" || rest.substr(0, 1) == "}"))
        return {where, found + " without the bracket that it would close", "write a list as [a, b], and a mapping as {a: b}"};
    if (message.starts_with(INVALID_ESCAPE)) // the parser is behind it already
        return {places.position_of(places.rest(0).rfind('\\', index)),
                quote(message.substr(std::string_view(INVALID_ESCAPE).size())) + " behind '\\' is not an escape in double quotes",
                "write '\\\\' for a backslash, or use single quotes"};
    return {where, "not valid YAML: " + message, "look at the indentation, quotes and brackets here and above"};
}

} // namespace pi_agent
