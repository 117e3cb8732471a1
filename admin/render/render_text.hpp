// The syntaxes that renderings share: what a shell, a unit file and a head comment want of any text.
#pragma once

#include "admin/render/render_target.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// One word of a POSIX shell's command line.
std::string shell_word(const std::string &text);
// One word of a unit file's value (systemd.syntax(7)): specifiers stay text. In an Exec= line a dollar sign means a variable, too.
std::string unit_word(const std::string &text);
std::string exec_word(const std::string &text);

// "# " lines: what this is, of which policy, and what is not in it. `more`: what to know of this target.
std::string head_of(RenderTarget target, const RenderPlan &plan, const std::vector<std::string> &more);

} // namespace pi_agent
