// The part of an explanation that tells of the sandbox: what it shows, of the host and of the project, and what it reaches.
#pragma once

#include "admin/diagnose/explain.hpp"

namespace pi_agent {

std::string box_text(const Explanation &explanation);
void add_box(const Explanation &explanation, nlohmann::json &json);

} // namespace pi_agent
