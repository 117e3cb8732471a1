// Texts that others chose: made harmless for people, decoded, taken apart as paths, and measured.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// --- Makes bytes that a user or a file system chose harmless: in messages, logs and unit properties.

// For people: control characters, backslashes, invalid UTF-8 and bidirectional overrides become \xNN or \u{...}; the rest stays.
std::string escape_for_display(std::string_view bytes);

// The same for what a program wrote: its lines as one, for a message.
std::string one_line(std::string output);

// True when every byte is an ASCII letter, a digit or one of `others`.
bool is_made_of(std::string_view bytes, std::string_view others) noexcept;

// True when every byte is in [A-Za-z0-9/_.:=@-]: the only alphabet that reaches a unit property (design rule 2).
bool is_property_safe(std::string_view bytes) noexcept;

// --- Decodes UTF-8 strictly: no overlong forms, no surrogates, nothing beyond U+10FFFF.

// One decoded character; `length` is the bytes it took, 0 when the bytes are not UTF-8.
struct CodePoint {
    char32_t value = 0;
    std::size_t length = 0;
};

// The first character of `bytes`, which must not be empty.
CodePoint decode_utf8(std::string_view bytes) noexcept;

// --- Paths as text, whatever is there on the host.

// "", "." and ".." between slashes make two texts of one path, and ".." leads out of it.
bool has_odd_component(std::string_view path) noexcept;

// "/a/" and "/a//" become "/a"; "/" stays.
std::string without_trailing_slashes(std::string path);

// True when `path` is `directory` or lies below it, compared by component ("/proj" does not hold "/proj-evil"). Both canonical.
bool is_within(std::string_view path, std::string_view directory) noexcept;

// `name` below `directory`; "" is the directory that both are relative to. `name` may have several components.
std::string join_path(const std::string &directory, std::string_view name);

// The directory that holds what an absolute path names; "/" for what lies there.
std::string parent_of(const std::string &path);

// The names in a path, ".." too, without empty ones and ".".
std::vector<std::string> path_components(std::string_view path);

// Whether a path that is relative to a directory `depth` names below some other leads out of that one, by its text, at any step.
bool leads_above(std::string_view path, std::ptrdiff_t depth);

// An absolute path with each ".." taken back by its text, which leads elsewhere where a link is on the way; above "/" is "/".
std::string resolved_by_text(std::string_view path);

// --- Texts in parts.

// What lies between separators; nothing behind one at the end. The parts refer to `text`.
inline std::vector<std::string_view> split(std::string_view text, char separator)
{
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        parts.push_back(text.substr(0, text.find(separator)));
        text.remove_prefix(std::min(parts.back().size() + 1, text.size()));
    }
    return parts;
}

// The number that a text is, and nothing but that. `base`: of an integer; 10 where it is left out.
template <typename Number>
std::optional<Number> to_number(std::string_view text, auto... base) noexcept
{
    Number number{};
    // cppcheck-suppress danglingTemporaryLifetime ; nothing of `text` is returned
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// Whether a list of words, with one space between them, holds this one.
constexpr bool has_word(std::string_view words, std::string_view word) noexcept
{
    for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return word.find(' ') == word.npos;
    }
    return false;
}

// --- What is in the files that stand for missing ones in a repository while a session runs (runner/as_user/git_paths.hpp). They are
// nobody's, and the look for what an agent left passes them over.

constexpr std::string_view placeholder_comment = "# A placeholder of pi-agent, there while a session runs. It says nothing to git.\n";
// To git this is the directory that the file lies in, as if there were no file. An empty one would stop git. No other program writes it so.
constexpr std::string_view placeholder_commondir = "././.\n";

// --- How deep JSON text nests, before anything parses it.

// Whether more than `levels` objects and lists lie in each other. Exact for valid JSON; what is not valid is the parser's to refuse. The
// parser's own callback takes the square of the number of objects in one list for the same answer: minutes for a MiB of "{},".
bool nests_deeper(std::string_view json, int levels) noexcept;

} // namespace pi_agent
