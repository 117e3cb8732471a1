// YAML as pi-agentctl writes it: a line for each key at the top. And a value found in a tree, or put there.
#pragma once

#include "common/policy/yaml/yaml_tree.hpp"

namespace pi_agent {

// {"limits", "memory"}; empty is the whole document.
using KeyPath = std::vector<std::string>;

// The tree of a text. Throws PolicyError for one that is not YAML.
YamlNode parse_or_throw(const std::string &file, const std::string &text);

// The value at `path`; nullptr without one.
const YamlNode *find_node(const YamlNode &root, const KeyPath &path);

// Gives `path` this value; mappings on the way are made. Throws Failure(configuration) where another kind of value is on the way.
void put_node(YamlNode &root, const KeyPath &path, const YamlNode &value);

// A text as a scalar in one line, in quotes wherever a reader could take it for anything else. Throws Failure(usage) for a text with
// control characters.
std::string yaml_word(const std::string &text);

// A value in one line: [a, 'b c'], {key: value}.
std::string yaml_line(const YamlNode &node);

// A mapping with a line for each key.
std::string yaml_lines(const YamlNode &mapping);

} // namespace pi_agent
