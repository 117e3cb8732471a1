// Makes bytes that a user or a file system chose harmless: in messages, logs and unit properties.
#pragma once

#include <string>
#include <string_view>

namespace pi_agent {

// For people: control characters, backslashes, invalid UTF-8 and bidirectional overrides become \xNN or \u{...}; the rest stays.
std::string escape_for_display(std::string_view bytes);

// True when every byte is in [A-Za-z0-9/_.:=@-]: the only alphabet that reaches a unit property (design rule 2).
bool is_property_safe(std::string_view bytes) noexcept;

} // namespace pi_agent
