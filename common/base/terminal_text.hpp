// Text that people read on a terminal: wrapped at words, coloured where that helps. Pipes and files get it as it is.
#pragma once

#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace pi_agent {

struct TextTerminal {
    std::size_t columns;
    bool has_colours; // without NO_COLOR, and unless the terminal is a dumb one
};

// None unless `fd` is a terminal that says how wide it is.
std::optional<TextTerminal> text_terminal(int fd);

// Columns of a character, whatever locale this process was started in.
std::size_t columns_of(char32_t character);

// Lines that are wider than the terminal go on below, indented as their kind of line is: behind a bullet or a label, in the last column of
// a table, or behind the "#" of a comment. A word that is wider by itself stays whole. The words that say how something went have a colour.
std::string fitted(std::string_view text, const TextTerminal &terminal);

// `text` in the colour of a failure, where there are colours.
std::string as_failure(const std::string &text, const std::optional<TextTerminal> &terminal);

// Fits what `stream` writes while it lives, where `fd`, to which the stream leads, is a terminal. A line without its end waits for a flush.
class FittedStream final : private std::streambuf {
public:
    FittedStream(std::ostream &stream, int fd);
    ~FittedStream() override;
    FittedStream(const FittedStream &) = delete;
    FittedStream &operator=(const FittedStream &) = delete;

    // What follows is for programs: it goes out as it is.
    void stop();
    [[nodiscard]] const std::optional<TextTerminal> &terminal() const noexcept { return terminal_; }

private:
    int_type overflow(int_type byte) override;
    std::streamsize xsputn(const char *bytes, std::streamsize count) override;
    int sync() override;
    bool pass(std::size_t length);

    std::ostream &stream_;
    std::ios_base::fmtflags flags_;
    std::streambuf *below_;
    std::optional<TextTerminal> terminal_;
    std::string waiting_;
};

} // namespace pi_agent
