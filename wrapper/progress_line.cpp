// Drawing and erasing the progress line.
#include "wrapper/progress_line.hpp"

#include "wrapper/standard_error.hpp"

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace pi_agent {

namespace {

// ECMA-48 (EL); DECSC, DECRC and DECAWM as the VT100 has them. A text that is wider than the terminal stays in its line, which is all that
// can be erased.
constexpr const char *erase_line = "\r\x1b[K";
constexpr const char *keep_place = "\0337";
constexpr const char *erase_from_there = "\0338\x1b[K";
constexpr const char *wrap_off = "\x1b[?7l";
constexpr const char *wrap_on = "\x1b[?7h";

bool can_erase() noexcept
{
    const char *terminal = std::getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb" && *terminal != '\0';
}

} // namespace

void ProgressLine::show(const std::string &text)
{
    if (!can_erase()) return;
    const bool is_behind = place_ == Place::behind_output;
    if (is_behind) clear();
    say((is_behind ? keep_place : erase_line) + (wrap_off + ("pi: " + text)) + wrap_on);
    is_shown_ = true;
}

void ProgressLine::clear()
{
    if (is_shown_) say(place_ == Place::behind_output ? erase_from_there : erase_line);
    is_shown_ = false;
}

} // namespace pi_agent
