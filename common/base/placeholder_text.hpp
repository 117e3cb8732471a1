// What is in the files that stand for missing ones in a repository while a session runs (runner/as_user/placeholders.hpp). They are
// nobody's, and the look for what an agent left passes them over.
#pragma once

#include <string_view>

namespace pi_agent {

constexpr std::string_view placeholder_comment = "# A placeholder of pi-agent, there while a session runs. It says nothing to git.\n";
// To git this is the directory that the file lies in, as if there were no file. An empty one would stop git. No other program writes it so.
constexpr std::string_view placeholder_commondir = "././.\n";

} // namespace pi_agent
