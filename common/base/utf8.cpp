// Strict UTF-8, one character at a time.
#include "common/base/utf8.hpp"

namespace pi_agent {

namespace {

struct SequenceShape {
    std::size_t length;
    char32_t first_bits;
    char32_t smallest; // below this the sequence is an overlong form
};

SequenceShape shape_of(unsigned char first) noexcept
{
    if (first < 0x80) return {1, first, 0};
    if ((first & 0xE0U) == 0xC0U) return {2, first & 0x1FU, 0x80};
    if ((first & 0xF0U) == 0xE0U) return {3, first & 0x0FU, 0x800};
    if ((first & 0xF8U) == 0xF0U) return {4, first & 0x07U, 0x10000};
    return {0, 0, 0};
}

} // namespace

CodePoint decode_utf8(std::string_view bytes) noexcept
{
    const auto shape = shape_of(static_cast<unsigned char>(bytes.front()));
    if (shape.length == 0 || shape.length > bytes.size()) return {};
    char32_t value = shape.first_bits;
    for (std::size_t index = 1; index < shape.length; ++index) {
        const auto byte = static_cast<unsigned char>(bytes[index]);
        if ((byte & 0xC0U) != 0x80U) return {};
        value = (value << 6U) | (byte & 0x3FU);
    }
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (value < shape.smallest || value > 0x10FFFF || surrogate) return {};
    return {value, shape.length};
}

} // namespace pi_agent
