// Quoting, as each reader undoes it.
#include "admin/render/render_text.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/escape.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

namespace pi_agent {

namespace {

// Means nothing to shells and unit files.
bool is_plain(std::string_view text)
{
    return is_property_safe(text) && !text.empty();
}

std::string quoted_for_unit(const std::string &text, bool is_command)
{
    if (is_plain(text)) return text;
    std::string quoted = "\"";
    for (const char byte : text) {
        const auto value = static_cast<unsigned char>(byte);
        if (byte == '"' || byte == '\\')
            quoted.append(1, '\\').append(1, byte);
        else if (byte == '%' || (byte == '$' && is_command))
            quoted.append(2, byte);
        else if (value < 0x20 || value == 0x7f)
            quoted.append(fmt::format("\\x{:02x}", value));
        else
            quoted.append(1, byte);
    }
    return quoted + '"';
}

} // namespace

std::string shell_word(const std::string &text)
{
    if (is_plain(text) || std::all_of(text.begin(), text.end(), [](char byte) {
            return is_property_safe(std::string_view(&byte, 1)) || byte == ',' || byte == '+' || byte == '%';
        }))
        return text.empty() ? "''" : text;
    std::string quoted = "'";
    for (const char byte : text)
        quoted += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
    return quoted + "'";
}

std::string unit_word(const std::string &text)
{
    return quoted_for_unit(text, false);
}

std::string exec_word(const std::string &text)
{
    return quoted_for_unit(text, true);
}

std::string head_of(RenderTarget target, const RenderPlan &plan, const std::vector<std::string> &more)
{
    std::string text =
        fmt::format("# pi-agent {}: what {} grants to {} in {}, for {}. Render it again when either changes.\n", build::version,
                    escape_for_display(plan.rules.entry), plan.user.name, escape_for_display(plan.directory), to_string(target));
    for (const auto &line : more)
        text += "# " + escape_for_display(line) + "\n";
    if (target == RenderTarget::slurm) return text;
    const auto lines = left_out(plan);
    if (!lines.empty()) text += "# Not in it, because the runner makes it anew at each start:\n";
    for (const auto &line : lines)
        text += "#   " + line + "\n";
    return text;
}

} // namespace pi_agent
