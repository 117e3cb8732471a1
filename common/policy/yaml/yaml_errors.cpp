// One sentence for each complaint that people meet, with what was expected.
#include "common/policy/yaml/yaml_errors.hpp"

#include "common/base/problems.hpp"
#include "common/base/utf8.hpp"

#include <yaml-cpp/exceptions.h>

namespace pi_agent {

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
                quote(message.substr(std::string_view(INVALID_ESCAPE).size())) + " behind '\\' is no escape of double quotes",
                "write '\\\\' for a backslash, or use single quotes"};
    return {where, "not valid YAML: " + message, "look at the indentation, quotes and brackets here and above"};
}

} // namespace pi_agent
