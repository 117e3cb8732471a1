// How words and values are written in what is rendered: unit files, YAML, shell.
#pragma once

#include "admin/render/render_plan.hpp"
#include "runner/plan/unit_properties.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace pi_agent {

// --- The syntaxes that renderings share: what a shell, a unit file and a head comment want of any text.

// One word of a POSIX shell's command line.
std::string shell_word(const std::string &text);
// One word of a unit file's value (systemd.syntax(7)): specifiers stay text. In an Exec= line a dollar sign means a variable, too.
std::string unit_word(const std::string &text);
std::string exec_word(const std::string &text);
// Kubernetes puts variables into what it starts: $(NAME) is one's value, and $$ a dollar sign.
std::string kubernetes_word(const std::string &text);

// "# " lines: what this is, of which policy, and what is not in it. `more`: what to know of this target.
std::string head_of(RenderTarget target, const RenderPlan &plan, const std::vector<std::string> &more);

// --- Properties of units as systemd wants them over D-Bus, written as lines of a unit file.

// "NAME=VALUE\n" and, for a list of mounts, a line for each.
std::string unit_file_lines(const UnitProperty &property);

// --- Data as YAML, for engines that want it; no program of pi-agent reads it again.

// One document, with a line feed at its end. Texts are quoted wherever a reader could take them for anything else.
std::string to_yaml(const nlohmann::ordered_json &data);

} // namespace pi_agent
