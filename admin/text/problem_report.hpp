// What is wrong with a policy, for administrators and for programs.
#pragma once

#include "common/base/error.hpp"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// The text of a file that a diagnostic names; none where there is nothing to show of it.
using TextOfFile = std::function<std::optional<std::string>(const std::string &file)>;

// Reads the file anew, as compilers do: what is shown is what the administrator finds there now.
std::optional<std::string> read_again(const std::string &file);

// Each diagnostic behind `prefix` on a line, then the line of the file with a caret.
std::string show_problems(const std::vector<Diagnostic> &diagnostics, const std::string &prefix, const TextOfFile &text_of_file);

// `text` with `prefix` before each of its lines, and a line feed after each.
std::string prefix_lines(const std::string &prefix, const std::string &text);

// {"file", "line", "column", "key", "message", "remedy"}; null for what a diagnostic does not have.
nlohmann::json to_json(const Diagnostic &diagnostic);

} // namespace pi_agent
