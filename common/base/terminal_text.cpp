// Wraps text at words, and colours the words that say how something went.
#include "common/base/terminal_text.hpp"

#include "common/base/text.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <cwchar>

namespace pi_agent {

namespace {

constexpr std::size_t fewest_columns = 30; // fewer do not make wrapped text easier to read
constexpr std::size_t label_columns = 10;  // of explain and version
constexpr char escape_byte = '\033';
constexpr const char *no_colour = "\033[0m";
constexpr const char *red = "\033[1;31m";
constexpr const char *yellow = "\033[33m";
constexpr const char *green = "\033[32m";

// How a line begins, behind its indent and the program's name.
struct Mark {
    std::string_view word;
    const char *colour;
};
constexpr Mark marks[] = {
    {"error:", red},          {"denied:", red},   {"WRONG", red},       {"refused:", red},          {"not allowed", red},
    {"not authorised:", red}, {"unusable:", red}, {"warning:", yellow}, {"note:", yellow},          {"not verified:", yellow},
    {"left behind:", yellow}, {"held", green},    {"allowed:", green},  {"policy is valid", green}, {"done:", green},
};
constexpr std::string_view program_names[] = {"pi:", "pi-agentctl:"};

// The bytes of a sequence that chooses a colour, at the beginning of `text`; 0 for any other text.
std::size_t length_of_colour(std::string_view text)
{
    if (text.substr(0, 2) != "\033[") return 0;
    const std::size_t end = text.find_first_not_of("0123456789;", 2);
    return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

std::size_t width_of_text(std::string_view text)
{
    std::size_t width = 0;
    while (!text.empty()) {
        std::size_t length = length_of_colour(text);
        if (length == 0) {
            const auto character = decode_utf8(text);
            length = std::max<std::size_t>(character.length, 1);
            width += character.length == 0 ? 1 : columns_of(character.value);
        }
        text.remove_prefix(length);
    }
    return width;
}

// What moves the cursor is a program's own drawing, and not for us to wrap.
bool is_drawn(std::string_view line)
{
    for (std::size_t at = line.find(escape_byte); at != std::string_view::npos; at = line.find(escape_byte, at + 1))
        if (length_of_colour(line.substr(at)) == 0) return true;
    return line.find_first_of("\r\t\b") != std::string_view::npos;
}

// "   12 | text" and "      |   ^", whose columns belong together (admin/text/terminal.hpp).
bool is_excerpt(std::string_view line)
{
    const std::size_t bar = line.find_first_not_of(" 0123456789");
    return bar >= 6 && bar != std::string_view::npos && line.substr(bar, 2) == "| ";
}

// With the space behind it, and its colour.
std::size_t length_of_program_name(std::string_view line)
{
    const std::size_t begin = length_of_colour(line);
    for (const auto name : program_names) {
        if (!line.substr(begin).starts_with(name)) continue;
        const std::size_t end = begin + name.size();
        const std::size_t behind = end + length_of_colour(line.substr(end));
        return line.substr(behind, 1) == " " ? behind + 1 : 0;
    }
    return 0;
}

// The columns before the text of a bullet, a number or a label.
std::size_t columns_before_text(std::string_view line, std::size_t indent)
{
    const std::string_view text = line.substr(indent);
    if (text.starts_with("- ") || text.starts_with("* ")) return indent + 2;
    const std::size_t number = text.find_first_not_of("0123456789");
    if (number != std::string_view::npos && number > 0 && text.substr(number, 2) == ". ") return indent + number + 2;
    if (line.size() > label_columns && indent == 0 && line.substr(label_columns - 2, 2) == ": ") return label_columns;
    // "PLACE: what happened" goes on below that; a paragraph does not.
    const std::size_t colon = text.find(": ");
    return indent + (indent > 0 || colon < text.find(' ') ? 2 : 0);
}

// What a line's other lines begin with.
std::string beginning_below(std::string_view line, std::size_t columns)
{
    const std::size_t name = length_of_program_name(line);
    const std::size_t indent = std::min(line.find_first_not_of(' ', name), line.size());
    if (line.substr(indent, 2) == "# ") return std::string(line.substr(0, indent + 2));
    std::size_t found = name > 0 && indent == name ? 2 : columns_before_text(line, indent);
    // The last column of a table, where its beginning leaves room for words.
    for (std::size_t gap = line.find("  ", indent); gap != std::string_view::npos; gap = line.find("  ", gap)) {
        gap = std::min(line.find_first_not_of(' ', gap), line.size());
        const std::size_t before = width_of_text(line.substr(0, gap));
        if (before > columns / 2) break;
        found = before;
        if (line.substr(gap, 2) == "# ") return std::string(found, ' ') + "# ";
    }
    return std::string(found, ' ');
}

std::string wrapped(std::string_view line, std::size_t columns)
{
    if (width_of_text(line) <= columns || is_drawn(line) || is_excerpt(line)) return std::string(line);
    const std::string below = beginning_below(line, columns);
    std::string text;
    std::size_t column = 0;
    bool has_word = false; // in this line
    while (!line.empty()) {
        const std::size_t blanks = line.find_first_not_of(' ');
        if (blanks == std::string_view::npos) break;
        const std::string_view word = line.substr(blanks, line.find(' ', blanks) - blanks);
        const std::size_t width = width_of_text(word);
        if (has_word && column + blanks + width > columns) {
            text += '\n' + below + std::string(word);
            column = below.size() + width;
        } else {
            text += std::string(blanks, ' ') + std::string(word);
            column += blanks + width;
        }
        has_word = true;
        line.remove_prefix(blanks + word.size());
    }
    return text;
}

std::string marked(std::string line)
{
    const std::size_t begin = std::min(line.find_first_not_of(' ', length_of_program_name(line)), line.size());
    for (const auto &mark : marks)
        if (std::string_view(line).substr(begin).starts_with(mark.word))
            return line.insert(begin + mark.word.size(), no_colour).insert(begin, mark.colour);
    return line;
}

} // namespace

std::optional<TextTerminal> text_terminal(int fd)
{
    winsize window{};
    if (::isatty(fd) != 1 || ::ioctl(fd, TIOCGWINSZ, &window) != 0 || window.ws_col < fewest_columns)
        return std::nullopt; // NOLINT(*-vararg)
    const auto is_set = [](const char *name) {
        const char *value = std::getenv(name); // NOLINT(concurrency-mt-unsafe): its callers have one thread
        return value != nullptr && *value != '\0' ? value : nullptr;
    };
    const char *type = is_set("TERM");
    return TextTerminal{window.ws_col, is_set("NO_COLOR") == nullptr && type != nullptr && std::string_view(type) != "dumb"};
}

std::size_t columns_of(char32_t character)
{
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8 == nullptr) return 1; // a C library without it: right for most of the world's letters
    const locale_t before = ::uselocale(utf8);
    const int width = ::wcwidth(static_cast<wchar_t>(character));
    ::uselocale(before);
    return width < 0 ? 1 : static_cast<std::size_t>(width);
}

std::string fitted(std::string_view text, const TextTerminal &terminal)
{
    std::string shown;
    for (const auto line : split(text, '\n')) {
        const auto lines = wrapped(line, terminal.columns);
        shown += (terminal.has_colours ? marked(lines) : lines) + '\n';
    }
    if (!text.empty() && text.back() != '\n') shown.pop_back();
    return shown;
}

std::string as_failure(const std::string &text, const std::optional<TextTerminal> &terminal)
{
    return terminal && terminal->has_colours ? red + text + no_colour : text;
}

FittedStream::FittedStream(std::ostream &stream, int fd)
    : stream_(stream), flags_(stream.flags()), below_(stream.rdbuf()), terminal_(text_terminal(fd))
{
    if (!terminal_) return;
    stream_.rdbuf(this);
    stream_.unsetf(std::ios_base::unitbuf); // std::cerr's: each piece of a line would be wrapped as if it were one
}

FittedStream::~FittedStream()
{
    stop();
}

void FittedStream::stop()
{
    if (stream_.rdbuf() != this) return;
    FittedStream::sync();
    stream_.rdbuf(below_);
    stream_.setf(flags_ & std::ios_base::unitbuf);
}

FittedStream::int_type FittedStream::overflow(int_type byte)
{
    if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
    const char one = traits_type::to_char_type(byte);
    return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
}

std::streamsize FittedStream::xsputn(const char *bytes, std::streamsize count)
{
    waiting_.append(bytes, static_cast<std::size_t>(count));
    return pass(waiting_.rfind('\n') + 1) ? count : 0; // npos + 1 is 0
}

int FittedStream::sync()
{
    return pass(waiting_.size()) && below_->pubsync() == 0 ? 0 : -1;
}

bool FittedStream::pass(std::size_t length)
{
    const auto shown = fitted(std::string_view(waiting_).substr(0, length), *terminal_);
    waiting_.erase(0, length);
    const auto size = static_cast<std::streamsize>(shown.size());
    return below_->sputn(shown.data(), size) == size;
}

} // namespace pi_agent
