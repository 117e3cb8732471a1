// Reads the joined YAML tree of a policy, section by section, into types.
#pragma once

#include "common/base/problems.hpp"
#include "common/policy/policy.hpp"
#include "common/policy/yaml/yaml_tree.hpp"

namespace pi_agent {

// The whole policy from the tree of all its files; what it cannot take is reported and left at its default.
Policy read_policy(const YamlNode &root, Problems &problems);

// The value of a `version` key; reports anything but policy_version.
void read_version(const YamlNode &root, bool required, Problems &problems);

} // namespace pi_agent
