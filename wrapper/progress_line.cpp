// Drawing and erasing the progress line.
#include "wrapper/progress_line.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *erase_line = "\r\x1b[K"; // ECMA-48, EL

bool can_erase() noexcept
{
    const char *terminal = std::getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb" && *terminal != '\0';
}

} // namespace

void ProgressLine::show(const std::string &text)
{
    if (!can_erase()) return;
    std::fprintf(stderr, "%spi: %s", erase_line, text.c_str());
    is_shown_ = true;
}

void ProgressLine::clear()
{
    if (is_shown_) std::fputs(erase_line, stderr);
    is_shown_ = false;
}

} // namespace pi_agent
