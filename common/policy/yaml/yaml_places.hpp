// The place of something in a policy, and what is wrong there.
#pragma once

#include "common/base/error.hpp"

#include <cstddef>
#include <optional>

namespace pi_agent {

// --- Places in one YAML text: from bytes, as its parser counts, to characters, as people do.

// Refers to the text, and must not outlive it.
class YamlPlaces {
public:
    YamlPlaces(std::string file, std::string_view text);

    [[nodiscard]] const std::string &file() const noexcept { return file_; }

    // The byte at a line and a column that count bytes from 0; at most the end of the text.
    [[nodiscard]] std::size_t index_of(int line, int column) const;

    // A byte behind the end of the text counts as the end.
    [[nodiscard]] Position position_of(std::size_t index) const;

    // From this byte on.
    [[nodiscard]] std::string_view rest(std::size_t index) const { return text_.substr(index); }

    // Where the first quoted text begins at or after a byte: at its quote. Comments are passed over. npos without one.
    [[nodiscard]] std::size_t find_quote(std::size_t index) const;

    // Behind the quoted text that begins at this byte.
    [[nodiscard]] std::size_t skip_quoted(std::size_t index) const;

private:
    std::string file_;
    std::string_view text_;
    std::vector<std::size_t> lines_;         // where each begins
    std::vector<std::size_t> continuations_; // bytes of characters that are not their first, in order
};

// --- What a YAML parser's complaints mean to somebody who writes a policy.

// How far the parser had come.
struct YamlProgress {
    std::size_t last = 0;            // the byte where the last value or key began that it understood
    std::optional<std::size_t> open; // the innermost '[' or '{' that is not closed yet
};

struct YamlFault {
    Position where;
    std::string problem;
    std::string remedy;
};

// `message` is yaml-cpp's, `index` the byte it complains about.
YamlFault explain_yaml_error(const std::string &message, std::size_t index, const YamlProgress &progress, const YamlPlaces &places);

} // namespace pi_agent
