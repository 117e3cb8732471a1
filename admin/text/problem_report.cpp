// Diagnostics as text with lines of the file, and as JSON.
#include "admin/text/problem_report.hpp"

#include "admin/text/draft.hpp"
#include "admin/text/excerpt.hpp"
#include "admin/text/table.hpp"

#include <map>
#include <nlohmann/json.hpp>

namespace pi_agent {

std::optional<std::string> read_again(const std::string &file)
{
    try {
        return read_draft(file);
    } catch (const Failure &) { // that it cannot be read is what a diagnostic says already
        return std::nullopt;
    }
}

std::string prefix_lines(const std::string &prefix, const std::string &text)
{
    std::string lines;
    std::size_t start = 0;
    while (start <= text.size()) {
        const auto end = std::min(text.find('\n', start), text.size());
        lines += prefix + text.substr(start, end - start) + '\n';
        start = end + 1;
    }
    return lines;
}

std::string show_problems(const std::vector<Diagnostic> &diagnostics, const std::string &prefix, const TextOfFile &text_of_file)
{
    std::map<std::string, std::optional<std::string>> texts;
    std::string shown;
    for (const auto &diagnostic : diagnostics) {
        shown += prefix_lines(prefix, to_string(diagnostic));
        if (diagnostic.where.line == 0) continue;
        const auto [text, is_new] = texts.try_emplace(diagnostic.where.file);
        if (is_new) text->second = text_of_file(diagnostic.where.file);
        if (text->second) shown += excerpt(*text->second, diagnostic.where);
    }
    return shown;
}

nlohmann::json to_json(const Diagnostic &diagnostic)
{
    const auto number = [](int value) { return value == 0 ? nlohmann::json() : nlohmann::json(value); };
    return {{"file", text_or_null(diagnostic.where.file)},
            {"line", number(diagnostic.where.line)},
            {"column", number(diagnostic.where.column)},
            {"key", text_or_null(diagnostic.key)},
            {"message", diagnostic.problem},
            {"remedy", text_or_null(diagnostic.remedy)}};
}

} // namespace pi_agent
