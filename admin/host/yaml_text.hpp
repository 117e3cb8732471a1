// The bytes of a YAML text: where an entry, its value and its comments are, by the places that the parser gives.
#pragma once

#include "common/policy/yaml/yaml_places.hpp"
#include "common/policy/yaml/yaml_tree.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace pi_agent {

// Refers to the text, which begins without a byte order mark, and must not outlive it.
class YamlText {
public:
    YamlText(const std::string &file, std::string_view text) : places_(file, text), text_(text) {}

    [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
    [[nodiscard]] std::size_t index_of(const Position &where) const;
    // A line feed behind the end.
    [[nodiscard]] char at(std::size_t index) const noexcept { return index < text_.size() ? text_[index] : '\n'; }
    [[nodiscard]] bool has_blank(std::size_t index) const noexcept;
    // The first byte from here on other than a blank. A line feed ends the search, too.
    [[nodiscard]] std::size_t skip_blanks(std::size_t index) const noexcept;
    [[nodiscard]] std::size_t begin_of_line(std::size_t index) const noexcept;
    [[nodiscard]] std::size_t begin_of_next_line(std::size_t index) const noexcept;
    [[nodiscard]] bool begins_comment(std::size_t index) const noexcept;
    [[nodiscard]] bool has_comment(std::size_t begin, std::size_t end) const;
    [[nodiscard]] std::size_t skip_quoted(std::size_t index) const { return places_.skip_quoted(index); }
    // Behind the bracket that closes the one here.
    [[nodiscard]] std::size_t skip_brackets(std::size_t index) const;
    // Behind the value that begins here, which is not a block.
    [[nodiscard]] std::size_t skip_value(std::size_t index, bool in_brackets) const;

private:
    [[nodiscard]] bool begins_quoted(std::size_t index) const noexcept;

    YamlPlaces places_;
    std::string_view text_;
};

// One entry of a mapping in the text.
struct EntryPlace {
    std::size_t begin = 0;  // of its key
    std::size_t colon = 0;  // behind its colon
    std::size_t value = 0;  // where its value begins, if that is in the same line and not a block
    std::size_t end = 0;    // behind its value; of an entry on lines of its own, behind the last of these
    bool is_inline = false; // the value is
    bool in_brackets = false;
};
EntryPlace place_of(const YamlText &text, const YamlNode &mapping, const YamlEntry &entry);

// Throws Failure(configuration) that names the place, and what to do.
[[noreturn]] void refuse_change(const Position &where, const std::string &why);

} // namespace pi_agent
