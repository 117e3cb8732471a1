// Parses a user's JSON with bounds, and merges managed values over it.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace pi_agent {

enum class JsonSyntax { strict, with_comments }; // comments and trailing commas, as pi allows in models.json

// JSON whose top level is an object, at most 128 levels deep. Throws Failure(configuration) with "name:line:column".
nlohmann::json parse_json_object(const std::string &text, const std::string &name, JsonSyntax syntax = JsonSyntax::strict);

// Objects merge recursively; arrays, scalars and null are replaced by the managed value.
nlohmann::json merge_managed(nlohmann::json host, const nlohmann::json &managed);

} // namespace pi_agent
