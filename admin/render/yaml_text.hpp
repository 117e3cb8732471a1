// Data as YAML, for engines that want it; what is written is read again by no program of ours.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pi_agent {

// One document, with a line feed at its end. Texts are quoted wherever a reader could take them for anything else.
std::string to_yaml(const nlohmann::ordered_json &data);

} // namespace pi_agent
