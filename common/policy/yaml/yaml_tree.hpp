// A bounded, plain tree of one YAML document; yaml-cpp's only home is yaml_tree.cpp.
#pragma once

#include "common/base/error.hpp"

#include <optional>

namespace pi_agent {

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
