// Changes one value in the text of a YAML file, and leaves everything else as somebody wrote it, comments too.
#pragma once

#include "common/policy/yaml/yaml_tree.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// {"limits", "memory"}; empty is the whole document.
using KeyPath = std::vector<std::string>;

// The tree of a text. Throws PolicyError for one that is not YAML.
YamlNode parse_or_throw(const std::string &file, const std::string &text);

// The entry of a mapping with this key; nullptr without one.
const YamlEntry *find_entry(const YamlNode &mapping, const std::string &key);

// The value at `path`; nullptr without one.
const YamlNode *find_node(const YamlNode &root, const KeyPath &path);

// A text as a scalar in one line, in quotes wherever a reader could take it for anything else. Throws Failure(usage) for a text with
// control characters.
std::string yaml_word(const std::string &text);

// A value in one line: [a, 'b c'], {key: value}.
std::string yaml_line(const YamlNode &node);

// The text in which `path`, which is not empty, has this value, YAML in one line; mappings on the way are made. And the text without that
// entry. The result is parsed again and holds nothing but that change. Throws Failure(configuration) for what cannot be changed without the
// loss of a comment, or of more: somebody has to edit that, and the message says where. Throws PolicyError for a text that is not YAML.
std::string set_in_yaml(const std::string &file, const std::string &text, const KeyPath &path, const std::string &value);
std::string remove_from_yaml(const std::string &file, const std::string &text, const KeyPath &path);

} // namespace pi_agent
