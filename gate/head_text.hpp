// What heads of HTTP have in common, whoever reads them: where one ends, what bytes it has, and words in which case does not count.
#pragma once

#include <cstddef>
#include <string_view>

namespace pi_agent {

constexpr std::string_view head_line_end = "\r\n";

enum class HeadProblem { none, too_large, control_character };

struct HeadSize {
    std::size_t size = 0; // 0 until it is whole
    HeadProblem problem = HeadProblem::none;
};

// How many of the bytes are the head, or what keeps them from becoming one. Each line ends in CR LF, and nothing else has a control
// character but a tab (RFC 9112, 2.2).
HeadSize measure_head(std::string_view bytes, std::size_t limit) noexcept;

// The name of a field, or a method (RFC 9110, 5.6.2).
bool is_token(std::string_view text) noexcept;

// Names and words of HTTP do not depend on the case of their letters.
bool is_same(std::string_view one, std::string_view other) noexcept;

std::string_view without_blanks(std::string_view text) noexcept;

// Whether a list with commas has the word.
bool has_listed_word(std::string_view list, std::string_view word) noexcept;

} // namespace pi_agent
