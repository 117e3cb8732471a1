// Finding the line, cutting it, and counting the columns of a terminal.
#include "admin/text/excerpt.hpp"

#include "common/base/escape.hpp"
#include "common/base/utf8.hpp"
#include "common/policy/yaml/yaml_tree.hpp"

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <fmt/format.h>
#include <optional>
#include <vector>

namespace pi_agent {

namespace {

constexpr std::size_t most_before = 60; // columns of a terminal before the caret, and after it
constexpr std::size_t most_after = 50;
constexpr std::size_t tab_stop = 8;

// A character as it is shown.
struct Cell {
    std::string text;
    std::size_t width; // columns of a terminal
};

// Columns that a terminal gives to a character, whatever locale this process was started in.
std::size_t width_of(char32_t character)
{
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8 == nullptr) return 1; // a C library without it: right for most of the world's letters
    const locale_t before = ::uselocale(utf8);
    const int width = ::wcwidth(static_cast<wchar_t>(character));
    ::uselocale(before);
    return width < 0 ? 1 : static_cast<std::size_t>(width);
}

// The first character of `line`, which is not empty, is taken off it.
Cell take_cell(std::string_view &line, std::size_t column)
{
    const auto character = decode_utf8(line);
    const auto bytes = line.substr(0, std::max<std::size_t>(character.length, 1)); // what is no UTF-8 counts byte by byte
    line.remove_prefix(bytes.size());
    if (bytes == "\t") return {std::string(tab_stop - column % tab_stop, ' '), tab_stop - column % tab_stop};
    if (bytes == "\\") return {"\\", 1}; // its escape would be longer than what the reader wrote
    auto shown = escape_for_display(bytes);
    const auto width = shown == bytes ? width_of(character.value) : shown.size();
    return {std::move(shown), width};
}

std::optional<std::string_view> find_line(std::string_view text, int number)
{
    for (; number > 1; --number) {
        const auto end = text.find('\n');
        if (end == std::string_view::npos) return std::nullopt;
        text.remove_prefix(end + 1);
    }
    auto line = text.substr(0, text.find('\n'));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
}

} // namespace

std::string excerpt(std::string_view text, const Position &where)
{
    const auto found = where.line > 0 ? find_line(without_byte_order_mark(text), where.line) : std::nullopt;
    if (!found) return "";
    auto line = *found;
    std::vector<Cell> before;
    std::size_t width = 0; // of what is before the caret
    for (int column = 1; column < where.column && !line.empty(); ++column) {
        before.push_back(take_cell(line, width));
        width += before.back().width;
    }
    auto first = before.begin();
    const bool cut = width > most_before;
    while (width > most_before)
        width -= (first++)->width;
    std::string shown = cut ? "..." : "";
    for (auto cell = first; cell != before.end(); ++cell)
        shown += cell->text;
    const auto caret = (cut ? 3 : 0) + width;
    for (std::size_t after = 0; !line.empty();) {
        const auto cell = take_cell(line, caret + after);
        after += cell.width;
        if (after > most_after) {
            shown += "...";
            break;
        }
        shown += cell.text;
    }
    return fmt::format("{:>5} | {}\n{:>5} | {}^\n", where.line, shown, "", std::string(caret, ' '));
}

} // namespace pi_agent
