// Decodes UTF-8 strictly: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace pi_agent {

// One decoded character; `length` is the bytes it took, 0 when the bytes are not UTF-8.
struct CodePoint {
    char32_t value = 0;
    std::size_t length = 0;
};

// The first character of `bytes`, which must not be empty.
CodePoint decode_utf8(std::string_view bytes) noexcept;

} // namespace pi_agent
