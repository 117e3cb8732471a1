// The list of diagnostics and the phrases they share.
#include "common/base/problems.hpp"

#include "common/base/text.hpp"

#include <numeric>

namespace pi_agent {

namespace {

constexpr std::size_t longest_quote = 80;

// The number of inserted, deleted, changed or swapped letters between two short words.
std::size_t edit_distance(std::string_view left, std::string_view right)
{
    std::vector<std::vector<std::size_t>> rows(left.size() + 1, std::vector<std::size_t>(right.size() + 1));
    std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
    for (std::size_t i = 1; i <= left.size(); ++i) {
        rows[i][0] = i;
        for (std::size_t j = 1; j <= right.size(); ++j) {
            const std::size_t changed = left[i - 1] == right[j - 1] ? 0 : 1;
            rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + changed});
            const bool swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[left.size()][right.size()];
}

// createUser, create-user and create_user are one word.
std::string folded(std::string_view word)
{
    std::string text;
    for (const char byte : word)
        if (byte != '_' && byte != '-') text += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
    return text;
}

} // namespace

void Problems::add(Position where, std::string key, std::string problem, std::string remedy)
{
    if (full_) return;
    if (diagnostics_.size() == most_diagnostics) {
        full_ = true;
        diagnostics_.push_back({{where.file}, "", "more problems follow", "correct these first"});
        return;
    }
    diagnostics_.push_back({std::move(where), std::move(key), std::move(problem), std::move(remedy)});
}

bool Problems::has(std::string_view key) const
{
    return std::any_of(diagnostics_.begin(), diagnostics_.end(), [key](const Diagnostic &diagnostic) { return diagnostic.key == key; });
}

bool Problems::has_within(std::string_view key) const
{
    return std::any_of(diagnostics_.begin(), diagnostics_.end(), [key](const Diagnostic &diagnostic) {
        const std::string_view other = diagnostic.key;
        return other.substr(0, key.size()) == key && (other.size() == key.size() || other[key.size()] == '.' || other[key.size()] == '[');
    });
}

void Problems::add_all(const std::vector<Diagnostic> &diagnostics)
{
    for (const auto &diagnostic : diagnostics)
        add(diagnostic.where, diagnostic.key, diagnostic.problem, diagnostic.remedy);
}

void Problems::throw_if_any() const
{
    if (!diagnostics_.empty()) throw PolicyError(diagnostics_);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view> &candidates)
{
    std::string_view nearest;
    std::size_t nearest_distance = word.size() < 5 ? 2 : 3; // from here on it is another word
    for (const auto candidate : candidates) {
        if (word.size() > candidate.size() + 2) continue;
        const auto distance = edit_distance(folded(word), folded(candidate));
        if (distance >= nearest_distance) continue;
        nearest = candidate;
        nearest_distance = distance;
    }
    return nearest.empty() ? "" : "; did you mean " + quote(nearest) + "?";
}

std::string quote(std::string_view text)
{
    if (text.size() <= longest_quote) return "'" + escape_for_display(text) + "'";
    return "'" + escape_for_display(text.substr(0, longest_quote)) + "...'";
}

} // namespace pi_agent
