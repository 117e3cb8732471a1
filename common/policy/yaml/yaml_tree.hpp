// The place of something in a policy, and what is wrong there.
#pragma once

#include "common/base/error.hpp"
#include "common/base/problems.hpp"

#include <cstddef>
#include <optional>

namespace pi_agent {

// --- Places in one YAML text: from bytes, as its parser counts, to characters, as people do.

// Refers to the text, and must not outlive it.
class YamlPlaces {
public:
    YamlPlaces(std::string file, std::string_view text);

    [[nodiscard]] const std::string &file() const noexcept { return file_; }

    // The byte at a line and a column that count bytes from 0; at most the end of the text.
    [[nodiscard]] std::size_t index_of(int line, int column) const;

    // A byte behind the end of the text counts as the end.
    [[nodiscard]] Position position_of(std::size_t index) const;

    // From this byte on.
    [[nodiscard]] std::string_view rest(std::size_t index) const { return text_.substr(index); }

    // Where the first quoted text begins at or after a byte: at its quote. Comments are passed over. npos without one.
    [[nodiscard]] std::size_t find_quote(std::size_t index) const;

    // Behind the quoted text that begins at this byte.
    [[nodiscard]] std::size_t skip_quoted(std::size_t index) const;

private:
    std::string file_;
    std::string_view text_;
    std::vector<std::size_t> lines_;         // where each begins
    std::vector<std::size_t> continuations_; // bytes of characters that are not their first, in order
};

// --- What a YAML parser's complaints mean to somebody who writes a policy.

// How far the parser had come.
struct YamlProgress {
    std::size_t last = 0;            // the byte where the last value or key began that it understood
    std::optional<std::size_t> open; // the innermost '[' or '{' that is not closed yet
};

struct YamlFault {
    Position where;
    std::string problem;
    std::string remedy;
};

// `message` is yaml-cpp's, `index` the byte it complains about.
YamlFault explain_yaml_error(const std::string &message, std::size_t index, const YamlProgress &progress, const YamlPlaces &places);

// --- A bounded, plain tree of one YAML document; yaml-cpp's only home is yaml_tree.cpp.

struct YamlEntry;

struct YamlNode {
    enum class Kind { null, scalar, sequence, mapping };

    Kind kind = Kind::null;
    Position where;
    std::string text;               // of a scalar
    bool quoted = false;            // a quoted or block scalar: always text, whatever it looks like
    std::vector<YamlNode> items;    // of a sequence
    std::vector<YamlEntry> entries; // of a mapping, in order; every key once
};

struct YamlEntry {
    std::string key;
    Position where;
    YamlNode value;
};

// The largest policy file and the deepest nesting that are read.
constexpr std::size_t yaml_size_limit = std::size_t{1} << 20U;
constexpr std::size_t yaml_depth_limit = 64;

// Parses `text`, which `name` names in diagnostics. Returns nothing if the text is not acceptable YAML at all; a key given twice is
// reported too, but its first value stays in the tree so that the rest can be checked.
std::optional<YamlNode> parse_yaml(const std::string &name, const std::string &text, Problems &problems);

// Some editors begin a file with U+FEFF: no part of the text, nor of its columns.
std::string_view without_byte_order_mark(std::string_view text) noexcept;

// What a plain scalar means in YAML 1.2's core schema; `odd` is a null, boolean or number that core does not write as JSON does
// (True, 010, 0x1F, +1, .5): refused, because other YAML readers disagree about it.
enum class ScalarMeaning { text, null, boolean, integer, real, odd };
ScalarMeaning meaning_of_scalar(const YamlNode &scalar);

// "text", "a list", "the number 8" ...: what `node` is, for a diagnostic that wanted something else.
std::string describe(const YamlNode &node);

} // namespace pi_agent
