// Finding places without walking through the text each time: a policy may be one long line.
#include "common/policy/yaml/yaml_places.hpp"

#include <algorithm>

namespace pi_agent {

YamlPlaces::YamlPlaces(std::string file, std::string_view text) : file_(std::move(file)), text_(text), lines_{0}
{
    for (std::size_t index = 0; index < text.size(); ++index) {
        if (text[index] == '\n') lines_.push_back(index + 1);
        if ((static_cast<unsigned char>(text[index]) & 0xC0U) == 0x80U) continuations_.push_back(index);
    }
}

std::size_t YamlPlaces::index_of(int line, int column) const
{
    if (line < 0 || static_cast<std::size_t>(line) >= lines_.size()) return text_.size();
    return std::min(lines_[static_cast<std::size_t>(line)] + static_cast<std::size_t>(std::max(column, 0)), text_.size());
}

Position YamlPlaces::position_of(std::size_t index) const
{
    // The end is that of the last line, not the begin of one that is not there.
    if (index >= text_.size()) index = !text_.empty() && text_.back() == '\n' ? text_.size() - 1 : text_.size();
    const auto line = std::upper_bound(lines_.begin(), lines_.end(), index) - 1;
    const auto before = [this](std::size_t byte) { return std::lower_bound(continuations_.begin(), continuations_.end(), byte); };
    const auto bytes = static_cast<std::ptrdiff_t>(index - *line);
    return {file_, static_cast<int>(line - lines_.begin()) + 1, static_cast<int>(bytes - (before(index) - before(*line))) + 1};
}

std::size_t YamlPlaces::find_quote(std::size_t index) const
{
    for (; index < text_.size(); ++index) {
        const char before = index == 0 ? '\n' : text_[index - 1];
        const bool blank_before = before == ' ' || before == '\t' || before == '\n';
        if (text_[index] == '#' && blank_before) {
            index = std::min(text_.find('\n', index), text_.size());
        } else if ((text_[index] == '\'' || text_[index] == '"') &&
                   (blank_before || std::string_view("[{,").find(before) != std::string_view::npos)) {
            return index;
        }
    }
    return std::string_view::npos;
}

std::size_t YamlPlaces::skip_quoted(std::size_t index) const
{
    const char quote = text_[index];
    for (++index; index < text_.size(); ++index) {
        const bool pair = index + 1 < text_.size() && (quote == '"' ? text_[index] == '\\' : text_.substr(index, 2) == "''");
        if (pair)
            ++index;
        else if (text_[index] == quote)
            return index + 1;
    }
    return text_.size();
}

} // namespace pi_agent
