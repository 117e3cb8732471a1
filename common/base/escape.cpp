// Escaping for people, and the alphabet of unit properties.
#include "common/base/escape.hpp"

#include "common/base/utf8.hpp"
#include "common/seams/defence.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace pi_agent {

namespace {

// Characters that move the cursor, reorder the text around them or end a line: with them a name can forge a message.
bool is_deceptive(char32_t character) noexcept
{
    const auto within = [character](char32_t first, char32_t last) { return character >= first && character <= last; };
    return character < 0x20 || within(0x7F, 0x9F) || character == 0x061C || within(0x200E, 0x200F) || within(0x2028, 0x202E) ||
           within(0x2066, 0x2069) || character == 0xFEFF || within(0xE0000, 0xE007F);
}

} // namespace

std::string escape_for_display(std::string_view bytes)
{
    std::string text;
    if (!defence_is_on("escape")) return std::string(bytes);
    while (!bytes.empty()) {
        const auto character = decode_utf8(bytes);
        const auto length = std::max<std::size_t>(character.length, 1);
        if (character.length == 0 || (length == 1 && (is_deceptive(character.value) || character.value == U'\\'))) {
            text += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes.front()));
        } else if (is_deceptive(character.value)) {
            text += fmt::format("\\u{{{:x}}}", static_cast<unsigned>(character.value));
        } else {
            text += bytes.substr(0, length);
        }
        bytes.remove_prefix(length);
    }
    return text;
}

bool is_property_safe(std::string_view bytes) noexcept
{
    return std::all_of(bytes.begin(), bytes.end(), [](char byte) {
        const bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
        const bool digit = byte >= '0' && byte <= '9';
        return letter || digit || std::string_view("/_.:=@-").find(byte) != std::string_view::npos;
    });
}

} // namespace pi_agent
