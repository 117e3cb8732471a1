// What a YAML parser's complaints mean to somebody who writes a policy.
#pragma once

#include "common/policy/yaml/yaml_places.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace pi_agent {

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

} // namespace pi_agent
