// The difference of two texts, line by line, for people.
#pragma once

#include <string>

namespace pi_agent {

// In the unified form of diff -u, three lines around each change, each line indented by four spaces and made harmless; empty when they are
// the same. The names stand in its head.
std::string text_diff(const std::string &old_name, const std::string &old_text, const std::string &new_name, const std::string &new_text);

} // namespace pi_agent
