// Texts that others chose: escapes, decodes, splits and measures them.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pi_agent {

// --- Makes bytes that a user or a file system chose harmless: in messages, logs and unit properties.

// Characters that move the cursor, reorder the text around them or end a line: with them a name can forge a message.
bool is_deceptive(char32_t character) noexcept;

// For people: control characters, backslashes, invalid UTF-8 and bidirectional overrides become \xNN or \u{...}; the rest stays.
std::string escape_for_display(std::string_view bytes);

// A program's output in that form: its lines joined into one, for a message.
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
// True when one of the two is the other, or lies below it.
inline bool are_nested(std::string_view one, std::string_view other) noexcept
{
    return is_within(one, other) || is_within(other, one);
}

// `name` below `directory`; "" is the directory that both are relative to. `name` may have several components.
std::string join_path(const std::string &directory, std::string_view name);

// The parent directory of an absolute path; "/" for an entry of "/".
std::string parent_of(const std::string &path);

// The names in a path, ".." too, without empty ones and ".".
std::vector<std::string> path_components(std::string_view path);

// Whether a relative path leaves a directory, by its text, at any step. It starts `depth` names below that directory.
bool leads_above(std::string_view path, std::ptrdiff_t depth);

// An absolute path with each ".." resolved by its text. With a symlink on the way it leads elsewhere. Above "/" is "/".
std::string resolved_by_text(std::string_view path);

// --- Texts in parts.

// What is wrong with a text that somebody wrote, and what they can do.
struct TextProblem {
    std::string text, remedy;
};

// Without line ends at its end, as git's small files of one path are read.
inline std::string without_line_end(std::string text)
{
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
        text.pop_back();
    return text;
}

// Without blanks and line ends at both ends.
inline std::string_view trimmed(std::string_view text)
{
    constexpr std::string_view blanks = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(blanks);
    return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// The parts between separators; a separator at the end adds no part. The parts refer to `text`.
inline std::vector<std::string_view> split(std::string_view text, char separator)
{
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        parts.push_back(text.substr(0, text.find(separator)));
        text.remove_prefix(std::min(parts.back().size() + 1, text.size()));
    }
    return parts;
}

// What `make` makes of each item, in their order.
auto mapped(auto &&items, auto make)
{
    std::vector<std::decay_t<decltype(make(*std::begin(items)))>> made;
    for (auto &&item : items)
        made.push_back(make(item));
    return made;
}

// The texts of the items in one, with the separator between them.
template <typename Make = std::identity>
std::string joined(const auto &items, std::string_view separator, Make text_of = {})
{
    std::string text;
    bool is_first = true;
    for (const auto &item : items) {
        if (!std::exchange(is_first, false)) text += separator;
        text += std::invoke(text_of, item);
    }
    return text;
}

// The text as a number; empty if it has anything else. `base` is for integers, 10 by default.
template <typename Number>
std::optional<Number> to_number(std::string_view text, auto... base) noexcept
{
    Number number{};
    // cppcheck-suppress danglingTemporaryLifetime ; the result does not refer to `text`
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// Letters of ASCII in lower case; all else stays.
constexpr char lower_case(char byte) noexcept
{
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

inline std::string lower_case(std::string text)
{
    for (char &byte : text)
        byte = lower_case(byte);
    return text;
}

// Whether a list of words, with one space between them, has this word.
constexpr bool has_word(std::string_view words, std::string_view word) noexcept
{
    for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
        if (const std::size_t end = at + word.size(); (at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
            return word.find(' ') == std::string_view::npos;
    }
    return false;
}

// --- The content of placeholders for missing files in a repository while a session runs (runner/as_user/protected_paths.hpp). The search
// for what an agent left skips them.

constexpr std::string_view placeholder_comment = "# A placeholder of pi-agent, there while a session runs. It says nothing to git.\n";
// For git this means the directory of the file, as if there were no file. An empty one would stop git. No other program writes it like
// this.
constexpr std::string_view placeholder_commondir = "././.\n";

// Whether objects and lists nest deeper than `levels`, before anything parses them. Exact for valid JSON; the parser refuses the rest. The
// parser's own callback takes the square of the number of objects in one list for the same answer: minutes for a MiB of "{},".
bool nests_deeper(std::string_view json, int levels) noexcept;

// "HOST:PORT", with brackets around an address of IPv6.
std::string host_and_port(const std::string &host, std::uint16_t port);

// --- Phrases of diagnostics.

// "; did you mean 'x'?" for the candidate that `word` misspells, or "". For the end of a diagnostic's problem.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view> &candidates);

// "'text'" escaped wherever it could deceive a reader, and cut if it is long.
std::string quote(std::string_view text);

// --- Versions of pi-agent, MAJOR.MINOR.PATCH: read, compared and written.

// Later numbers count less; compares as numbers do.
using Version = std::array<std::uint32_t, 3>;

// Empty unless it is three decimal numbers without leading zeros, at most nine digits each, and nothing else.
std::optional<Version> parse_version(std::string_view text) noexcept;

std::string to_string(const Version &version);

// The version of this build.
Version running_version();

} // namespace pi_agent
