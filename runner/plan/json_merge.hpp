// Merges JSON documents, keeping numbers as they were written.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// --- Parses a user's JSON with bounds, and merges managed values over it.

enum class JsonSyntax { strict, with_comments }; // comments and trailing commas, as pi allows in models.json

// JSON whose top level is an object, at most 128 levels deep. Throws Failure(configuration) with "name:line:column".
nlohmann::json parse_json_object(const std::string &text, const std::string &name, JsonSyntax syntax = JsonSyntax::strict);

// Objects merge recursively; arrays, scalars and null are replaced by the managed value.
nlohmann::json merge_managed(nlohmann::json host, const nlohmann::json &managed);

// --- Numbers of JSON documents that no C++ number holds as they are written (more than 18 digits, fractions, exponents, -0): they pass
// byte for byte. In a document they are texts with a mark that nobody writes by accident.

// JSON in which these numbers are marked texts, and where that added bytes: after which byte, and how many.
struct MarkedNumbers {
    std::string text;
    std::vector<std::pair<std::size_t, std::size_t>> added;
    // Translates a place in `text` into one in the original; both count from 1.
    [[nodiscard]] std::size_t original(std::size_t byte) const;
};

MarkedNumbers mark_numbers(const std::string &text);

// A document as text again, with its numbers as they were written. `indent` as for nlohmann's dump.
std::string dump_with_numbers(const nlohmann::json &document, int indent = -1);

// Whether two values are equal, or are the same number written in two ways.
bool are_same_values(const nlohmann::json &one, const nlohmann::json &other);

} // namespace pi_agent
