// The longest common lines, by the table that every textbook has: policies and sudo rules are short.
#include "admin/text/text_diff.hpp"

#include "common/base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <vector>

namespace pi_agent {

namespace {

constexpr std::size_t context = 3;
constexpr std::size_t table_limit = 4'000'000; // cells; beyond it all that lies between the first and the last change counts as changed

using Lines = std::vector<std::string>;

// ' ', '-' or '+', and the line.
struct Edit {
    char kind;
    std::string line;
};

Lines lines_of(const std::string &text)
{
    const auto lines = split(text, '\n');
    return {lines.begin(), lines.end()};
}

void add(std::vector<Edit> &edits, char kind, const Lines &lines, std::size_t from, std::size_t to)
{
    for (std::size_t index = from; index < to; ++index)
        edits.push_back({kind, lines[index]});
}

// Between `first` and the ends: removals and additions around the lines that both have.
void compare(const Lines &before, const Lines &after, std::size_t first, std::size_t before_end, std::size_t after_end,
             std::vector<Edit> &edits)
{
    const std::size_t rows = before_end - first;
    const std::size_t columns = after_end - first;
    if (rows * columns > table_limit) {
        add(edits, '-', before, first, before_end);
        return add(edits, '+', after, first, after_end);
    }
    std::vector<std::vector<std::uint32_t>> common(rows + 1, std::vector<std::uint32_t>(columns + 1, 0)); // of what is left from there
    for (std::size_t row = rows; row-- > 0;)
        for (std::size_t column = columns; column-- > 0;)
            common[row][column] = before[first + row] == after[first + column] ? common[row + 1][column + 1] + 1
                                                                               : std::max(common[row + 1][column], common[row][column + 1]);
    std::size_t row = 0;
    std::size_t column = 0;
    while (row < rows || column < columns) {
        if (row < rows && column < columns && before[first + row] == after[first + column]) {
            edits.push_back({' ', before[first + row++]});
            ++column;
        } else if (row < rows && (column == columns || common[row + 1][column] >= common[row][column + 1])) {
            edits.push_back({'-', before[first + row++]});
        } else {
            edits.push_back({'+', after[first + column++]});
        }
    }
}

std::vector<Edit> find_edits(const Lines &before, const Lines &after)
{
    const std::size_t shorter = std::min(before.size(), after.size());
    std::size_t head = 0;
    while (head < shorter && before[head] == after[head])
        ++head;
    std::size_t tail = 0;
    while (tail < shorter - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
        ++tail;
    std::vector<Edit> edits;
    add(edits, ' ', before, 0, head);
    compare(before, after, head, before.size() - tail, after.size() - tail, edits);
    add(edits, ' ', before, before.size() - tail, before.size());
    return edits;
}

// From the edit `from` to before `to`, with the numbers of the lines.
std::string hunk(const std::vector<Edit> &edits, std::size_t from, std::size_t to)
{
    std::size_t old_line = 1;
    std::size_t new_line = 1;
    for (std::size_t index = 0; index < from; ++index) {
        old_line += edits[index].kind != '+' ? 1 : 0;
        new_line += edits[index].kind != '-' ? 1 : 0;
    }
    std::size_t old_count = 0;
    std::size_t new_count = 0;
    std::string lines;
    for (std::size_t index = from; index < to; ++index) {
        old_count += edits[index].kind != '+' ? 1 : 0;
        new_count += edits[index].kind != '-' ? 1 : 0;
        lines += fmt::format("    {}{}\n", edits[index].kind, escape_for_display(edits[index].line));
    }
    // Of nothing, diff names the line before.
    return fmt::format("    @@ -{},{} +{},{} @@\n{}", old_count == 0 ? old_line - 1 : old_line, old_count,
                       new_count == 0 ? new_line - 1 : new_line, new_count, lines);
}

} // namespace

std::string text_diff(const std::string &old_name, const std::string &old_text, const std::string &new_name, const std::string &new_text)
{
    const auto edits = find_edits(lines_of(old_text), lines_of(new_text));
    std::string text;
    for (std::size_t index = 0; index < edits.size(); ++index) {
        if (edits[index].kind == ' ') continue;
        const std::size_t from = index > context ? index - context : 0;
        std::size_t last = index; // the last change of this hunk: the next one is too far away to share lines around it
        for (std::size_t next = index; next < edits.size() && next <= last + 2 * context + 1; ++next)
            if (edits[next].kind != ' ') last = next;
        const std::size_t to = std::min(edits.size(), last + context + 1);
        text += hunk(edits, from, to);
        index = to - 1;
    }
    return text.empty() ? "" : fmt::format("    --- {}\n    +++ {}\n", escape_for_display(old_name), escape_for_display(new_name)) + text;
}

} // namespace pi_agent
