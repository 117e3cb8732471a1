// The longest common lines, by the table that every textbook has: policies and sudo rules are short.
#include "admin/text/terminal.hpp"

#include "common/base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace pi_agent {

namespace {

constexpr std::size_t context = 3;
constexpr std::size_t table_limit = 4'000'000; // cells; beyond it everything between the first and the last change counts as changed

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

void add(std::vector<Edit> &edits, char kind, const Lines &lines)
{
    for (const auto &line : lines)
        edits.push_back({kind, line});
}

// Removals and additions around the lines that both have.
void compare(const Lines &before, const Lines &after, std::vector<Edit> &edits)
{
    const std::size_t rows = before.size();
    const std::size_t columns = after.size();
    if (rows * columns > table_limit) {
        add(edits, '-', before);
        return add(edits, '+', after);
    }
    std::vector<std::vector<std::uint32_t>> common(rows + 1, std::vector<std::uint32_t>(columns + 1, 0)); // of what is left from there
    for (std::size_t row = rows; row-- > 0;)
        for (std::size_t column = columns; column-- > 0;)
            common[row][column] =
                before[row] == after[column] ? common[row + 1][column + 1] + 1 : std::max(common[row + 1][column], common[row][column + 1]);
    std::size_t row = 0;
    std::size_t column = 0;
    while (row < rows || column < columns) {
        if (row < rows && column < columns && before[row] == after[column]) {
            edits.push_back({' ', before[row++]});
            ++column;
        } else if (row < rows && (column == columns || common[row + 1][column] >= common[row][column + 1])) {
            edits.push_back({'-', before[row++]});
        } else {
            edits.push_back({'+', after[column++]});
        }
    }
}

std::vector<Edit> find_edits(const Lines &before, const Lines &after)
{
    const auto [old_head, new_head] = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
    const auto [old_tail, new_tail] =
        std::mismatch(before.rbegin(), std::make_reverse_iterator(old_head), after.rbegin(), std::make_reverse_iterator(new_head));
    std::vector<Edit> edits;
    add(edits, ' ', {before.begin(), old_head});
    compare({old_head, old_tail.base()}, {new_head, new_tail.base()}, edits);
    add(edits, ' ', {old_tail.base(), before.end()});
    return edits;
}

// How many of these lines one of the two texts has: all except those of kind `other`.
std::size_t count_without(char other, std::span<const Edit> edits)
{
    return static_cast<std::size_t>(std::count_if(edits.begin(), edits.end(), [other](const Edit &edit) { return edit.kind != other; }));
}

// From the edit `from` to before `to`, with the numbers of the lines.
std::string hunk(std::span<const Edit> edits, std::size_t from, std::size_t to)
{
    const auto before = edits.first(from);
    const auto shown = edits.subspan(from, to - from);
    const std::size_t old_count = count_without('+', shown);
    const std::size_t new_count = count_without('-', shown);
    std::string lines;
    for (const auto &edit : shown)
        lines += fmt::format("    {}{}\n", edit.kind, escape_for_display(edit.line));
    // For an empty part, diff names the line before.
    return fmt::format("    @@ -{},{} +{},{} @@\n{}", count_without('+', before) + (old_count == 0 ? 0 : 1), old_count,
                       count_without('-', before) + (new_count == 0 ? 0 : 1), new_count, lines);
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
