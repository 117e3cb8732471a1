// Texts that others chose: made harmless for people, decoded, taken apart as paths, and measured.
#include "common/base/text.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>

#include <numeric>

namespace pi_agent {

namespace {

struct SequenceShape {
    std::size_t length;
    char32_t first_bits;
    char32_t smallest; // below this the sequence is an overlong form
};

SequenceShape shape_of(unsigned char first) noexcept
{
    if (first < 0x80) return {1, first, 0};
    if ((first & 0xE0U) == 0xC0U) return {2, first & 0x1FU, 0x80};
    if ((first & 0xF0U) == 0xE0U) return {3, first & 0x0FU, 0x800};
    if ((first & 0xF8U) == 0xF0U) return {4, first & 0x07U, 0x10000};
    return {0, 0, 0};
}

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
    std::string text = lower_case(std::string(word));
    std::erase_if(text, [](char byte) { return byte == '_' || byte == '-'; });
    return text;
}

} // namespace

bool is_deceptive(char32_t character) noexcept
{
    const auto within = [character](char32_t first, char32_t last) { return character >= first && character <= last; };
    return character < 0x20 || within(0x7F, 0x9F) || character == 0x061C || within(0x200E, 0x200F) || within(0x2028, 0x202E) ||
           within(0x2066, 0x2069) || character == 0xFEFF || within(0xE0000, 0xE007F);
}

std::string escape_for_display(std::string_view bytes)
{
    std::string text;
    if (!defence_is_on("escape")) return std::string(bytes);
    while (!bytes.empty()) {
        const auto character = decode_utf8(bytes);
        const auto length = std::max<std::size_t>(character.length, 1);
        if (character.length == 0 || (length == 1 && (is_deceptive(character.value) || character.value == U'\\'))) {
            text += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes.front()));
        } else if (is_deceptive(character.value)) {
            text += fmt::format("\\u{{{:x}}}", static_cast<unsigned>(character.value));
        } else {
            text += bytes.substr(0, length);
        }
        bytes.remove_prefix(length);
    }
    return text;
}

std::string one_line(std::string output)
{
    std::replace(output.begin(), output.end(), '\n', ' ');
    return escape_for_display(output.substr(0, output.find_last_not_of(' ') + 1));
}

bool is_made_of(std::string_view bytes, std::string_view others) noexcept
{
    return std::all_of(bytes.begin(), bytes.end(), [others](char byte) {
        const bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
        const bool digit = byte >= '0' && byte <= '9';
        return letter || digit || others.find(byte) != std::string_view::npos;
    });
}

bool is_property_safe(std::string_view bytes) noexcept
{
    return is_made_of(bytes, "/_.:=@-");
}

CodePoint decode_utf8(std::string_view bytes) noexcept
{
    const auto shape = shape_of(static_cast<unsigned char>(bytes.front()));
    if (shape.length == 0 || shape.length > bytes.size()) return {};
    char32_t value = shape.first_bits;
    for (std::size_t index = 1; index < shape.length; ++index) {
        const auto byte = static_cast<unsigned char>(bytes[index]);
        if ((byte & 0xC0U) != 0x80U) return {};
        value = (value << 6U) | (byte & 0x3FU);
    }
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (value < shape.smallest || value > 0x10FFFF || surrogate) return {};
    return {value, shape.length};
}

bool has_odd_component(std::string_view path) noexcept
{
    while (true) {
        const auto length = std::min(path.find('/'), path.size());
        if (const auto part = path.substr(0, length); part.empty() || part == "." || part == "..") return true;
        if (length == path.size()) return false;
        path.remove_prefix(length + 1);
    }
}

std::string without_trailing_slashes(std::string path)
{
    while (path.size() > 1 && path.back() == '/')
        path.pop_back();
    return path;
}

bool is_within(std::string_view path, std::string_view directory) noexcept
{
    if (directory == "/") return !path.empty() && path.front() == '/';
    return path.substr(0, directory.size()) == directory && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string join_path(const std::string &directory, std::string_view name)
{
    return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

std::string parent_of(const std::string &path)
{
    const std::size_t slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::vector<std::string> path_components(std::string_view path)
{
    std::vector<std::string> names;
    for (const auto name : split(path, '/'))
        if (!name.empty() && name != ".") names.emplace_back(name);
    return names;
}

bool leads_above(std::string_view path, std::ptrdiff_t depth)
{
    for (const auto &name : path_components(path)) {
        depth += name == ".." ? -1 : 1;
        if (depth < 0) return true;
    }
    return false;
}

std::string resolved_by_text(std::string_view path)
{
    std::vector<std::string> kept;
    for (auto &name : path_components(path)) {
        if (name != "..")
            kept.push_back(std::move(name));
        else if (!kept.empty())
            kept.pop_back();
    }
    std::string resolved;
    for (const auto &name : kept)
        resolved += "/" + name;
    return resolved.empty() ? "/" : resolved;
}

bool nests_deeper(std::string_view json, int levels) noexcept
{
    int depth = 0;
    for (std::size_t at = 0; at < json.size(); ++at) {
        const char byte = json[at];
        if (byte == '"') {
            for (++at; at < json.size() && json[at] != '"'; ++at)
                if (json[at] == '\\') ++at;
        } else if (byte == '{' || byte == '[') {
            if (++depth > levels) return true;
        } else if (byte == '}' || byte == ']') {
            --depth;
        }
    }
    return false;
}

std::string host_and_port(const std::string &host, std::uint16_t port)
{
    return (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// Phrases of diagnostics.

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

// --- Reading and writing MAJOR.MINOR.PATCH, in one form only.

std::optional<Version> parse_version(std::string_view text) noexcept
{
    constexpr std::size_t digit_limit = 9;
    const auto parts = split(text, '.');
    Version version{};
    if (parts.size() != version.size() || text.back() == '.') return std::nullopt;
    for (std::size_t index = 0; index < version.size(); ++index) {
        const auto part = parts[index];
        const bool is_plain = part.size() <= digit_limit && (part.size() == 1 || !part.starts_with('0'));
        const auto number = is_plain ? to_number<std::uint32_t>(part) : std::nullopt;
        if (!number) return std::nullopt;
        version[index] = *number;
    }
    return version;
}

std::string to_string(const Version &version)
{
    return fmt::format("{}.{}.{}", version[0], version[1], version[2]);
}

Version running_version()
{
    const std::optional<Version> version = parse_version(build::version);
    if (!version) throw Failure(ExitStatus::internal, "this build has no version"); // meson.build refuses to make such a one
    return *version;
}

} // namespace pi_agent
