// Measuring heads, and comparing their words.
#include "gate/head_text.hpp"

#include <algorithm>

namespace pi_agent {

HeadSize measure_head(std::string_view bytes, std::size_t limit) noexcept
{
    constexpr std::string_view head_end = "\r\n\r\n";
    const std::size_t end = bytes.find(head_end);
    const std::string_view head = bytes.substr(0, end == bytes.npos ? end : end + head_end.size());
    if (head.size() > limit) return {0, HeadProblem::too_large};
    for (std::size_t at = 0; at < head.size(); ++at) {
        const auto byte = static_cast<unsigned char>(head[at]);
        const bool ends_line =
            byte == '\r' ? at + 1 == head.size() || head[at + 1] == '\n' : byte == '\n' && at > 0 && head[at - 1] == '\r';
        if (!ends_line && ((byte < ' ' && byte != '\t') || byte == 0x7f)) return {0, HeadProblem::control_character};
    }
    return {end == bytes.npos ? 0 : head.size(), HeadProblem::none};
}

bool is_token(std::string_view text) noexcept
{
    constexpr std::string_view token_bytes = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return !text.empty() && text.find_first_not_of(token_bytes) == text.npos;
}

bool is_same(std::string_view one, std::string_view other) noexcept
{
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](char left, char right) {
        const auto lower = [](char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; };
        return lower(left) == lower(right);
    });
}

std::string_view without_blanks(std::string_view text) noexcept
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

bool has_listed_word(std::string_view list, std::string_view word) noexcept
{
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        if (is_same(without_blanks(list.substr(begin, end - begin)), word)) return true;
        begin = end + 1;
    }
    return false;
}

} // namespace pi_agent
