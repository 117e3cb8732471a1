// What commands ask and show on a terminal: questions, secrets, drafts, editors, excerpts, problems, differences.
#include "admin/text/terminal.hpp"

#include "admin/programs/program.hpp"
#include "common/base/terminal_text.hpp"
#include "common/host/beneath.hpp"

#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sstream>
#include <termios.h>

namespace pi_agent {

// Reads a secret: without an echo at a terminal, and restores the terminal however that ends.

namespace {

constexpr std::size_t longest_secret = 4096; // a line of a terminal has no more

volatile std::sig_atomic_t signal_that_came = 0; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a handler has no other place

extern "C" void note_signal(int number)
{
    signal_that_came = number;
}

// Signals that would end this process end the read instead; the terminal comes first.
class SignalsWait {
public:
    SignalsWait()
    {
        signal_that_came = 0;
        struct sigaction action {};
        action.sa_handler = note_signal; // without SA_RESTART, so that read(2) ends
        for (std::size_t index = 0; index < ending.size(); ++index)
            ::sigaction(ending[index], &action, &before_[index]);
    }
    ~SignalsWait()
    {
        for (std::size_t index = 0; index < ending.size(); ++index)
            ::sigaction(ending[index], &before_[index], nullptr);
        if (signal_that_came != 0) ::raise(signal_that_came);
    }
    SignalsWait(const SignalsWait &) = delete;
    SignalsWait &operator=(const SignalsWait &) = delete;

private:
    static constexpr std::array<int, 5> ending = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    std::array<struct sigaction, ending.size()> before_{};
};

class NoEcho {
public:
    NoEcho() : is_terminal_(::tcgetattr(STDIN_FILENO, &before_) == 0)
    {
        if (!is_terminal_) return;
        auto settings = before_;
        settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
        if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings) != 0) throw_errno("cannot switch the terminal's echo off");
    }
    ~NoEcho()
    {
        if (!is_terminal_) return;
        ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
        std::cerr << '\n' << std::flush; // the line feed that was not shown
    }
    NoEcho(const NoEcho &) = delete;
    NoEcho &operator=(const NoEcho &) = delete;

private:
    struct termios before_ {};
    bool is_terminal_;
};

constexpr std::size_t most_before = 60; // columns of a terminal before the caret, and after it
constexpr std::size_t most_after = 50;
constexpr std::size_t tab_stop = 8;

// A character as it is shown.
struct Cell {
    std::string text;
    std::size_t width; // columns of a terminal
};

// The first character of `line`, which is not empty, is taken off it.
Cell take_cell(std::string_view &line, std::size_t column)
{
    const auto character = decode_utf8(line);
    const auto bytes = line.substr(0, std::max<std::size_t>(character.length, 1)); // bytes that are not UTF-8 count one by one
    line.remove_prefix(bytes.size());
    if (bytes == "\t") return {std::string(tab_stop - column % tab_stop, ' '), tab_stop - column % tab_stop};
    if (bytes == "\\") return {"\\", 1}; // its escape would be longer than what the reader wrote
    auto shown = escape_for_display(bytes);
    const auto width = shown == bytes ? columns_of(character.value) : shown.size();
    return {std::move(shown), width};
}

std::optional<std::string_view> find_line(std::string_view text, int number)
{
    for (; number > 1; --number) {
        const auto end = text.find('\n');
        if (end == std::string_view::npos) return std::nullopt;
        text.remove_prefix(end + 1);
    }
    auto line = text.substr(0, text.find('\n'));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
}

} // namespace

std::optional<std::string> read_hidden(const std::string &question)
{
    const SignalsWait signals; // goes last: it may end this process
    const NoEcho no_echo;
    if (::isatty(STDIN_FILENO) == 1) std::cerr << question << ' ' << std::flush;
    std::string line;
    char byte = 0;
    while (line.size() < longest_secret) {
        const auto count = ::read(STDIN_FILENO, &byte, 1);
        if (count < 0 && errno == EINTR && signal_that_came == 0) continue;
        if (count < 0 && errno != EINTR) throw_errno("cannot read the answer");
        if (signal_that_came != 0) return std::nullopt;
        if (count == 0) return line.empty() ? std::nullopt : std::optional(line);
        if (byte == '\n') return line;
        line += byte;
    }
    throw Failure(ExitStatus::usage, "the answer is too long");
}

// The difference of two texts, as diff(1) finds it.

std::string text_diff(const std::string &old_name, const std::string &old_text, const std::string &new_name, const std::string &new_text)
{
    if (old_text == new_text) return "";
    std::string text = fmt::format("    --- {}\n    +++ {}\n", escape_for_display(old_name), escape_for_display(new_name));
    const auto result = has_program("diff") ? run_diff_program(old_text, new_text, {}) : ProgramResult{2, "not installed"};
    if (result.status != 1) // a change never waits for its picture, least of all an emergency stop
        return text + fmt::format("    (diff shows no lines: {})\n", escape_for_display(result.output));
    std::size_t head = 2; // the names that diff saw
    for (const auto line : split(result.output, '\n')) {
        if (head > 0)
            --head;
        else // a backslash is diff's own: the file lacks its last line feed
            text += fmt::format("    {}\n", line.starts_with('\\') ? std::string(line) : escape_for_display(line));
    }
    return text;
}

// What commands ask and show on a terminal: questions, drafts, editors, excerpts, problems.

std::string read_draft(const std::string &path)
{
    const auto fd = UniqueFd::adopt(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); // NOLINT(cppcoreguidelines-pro-type-vararg)
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) throw_errno("cannot open " + escape_for_display(path));
    if (!S_ISREG(status.st_mode)) throw Failure(ExitStatus::configuration, escape_for_display(path) + " is not a regular file");
    std::string text(yaml_size_limit + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const auto count = ::read(fd.get(), text.data() + size, text.size() - size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("cannot read " + escape_for_display(path));
        if (count == 0) break;
        size += static_cast<std::size_t>(count);
    }
    text.resize(size);
    return text;
}

char ask_letter(const std::string &question, const std::string &letters)
{
    std::string answer;
    while (::isatty(STDIN_FILENO) == 1) {
        std::cout.flush();
        std::cerr << question + ' ' << std::flush;
        if (!std::getline(std::cin, answer)) break;
        if (!answer.empty() && letters.find(answer.front()) != std::string::npos) return answer.front();
    }
    return letters.back();
}

std::optional<std::string> ask_line(const std::string &question, const std::string &otherwise)
{
    std::cout.flush();
    std::cerr << question + (otherwise.empty() ? "" : "[" + escape_for_display(otherwise) + "] ") << std::flush;
    std::string answer;
    if (!std::getline(std::cin, answer)) return std::nullopt;
    const auto said = trimmed(answer);
    return said.empty() ? otherwise : std::string(said);
}

void require_consent(const std::string &question, bool yes)
{
    if (yes) return;
    if (::isatty(STDIN_FILENO) != 1)
        throw Failure(ExitStatus::usage, question + " Standard input is not a terminal, so nobody can confirm: use --yes");
    if (ask_letter(question + " [y/n]", "yn") != 'y') throw NothingToDo("nothing was changed");
}

Variable own_environment()
{
    return [](const std::string &name) -> std::optional<std::string> {
        const char *value = std::getenv(name.c_str()); // NOLINT(concurrency-mt-unsafe): this program has one thread
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
}

std::vector<std::string> choose_editor(const Variable &variable)
{
    constexpr std::array<const char *, 5> traces = {"SUDO_UID", "SUDO_USER", "SUDO_COMMAND", "PKEXEC_UID", "DOAS_USER"};
    if (!std::ranges::any_of(traces, [&](const char *name) { return variable(name).has_value(); }) || !defence_is_on("editor-choice")) {
        for (const auto *name : {"SUDO_EDITOR", "VISUAL", "EDITOR"}) {
            std::istringstream value(variable(name).value_or(""));
            std::vector<std::string> words(std::istream_iterator<std::string>(value), {});
            if (words.empty()) continue;
            if (words.front().front() == '/')
                open_trusted(words.front(), O_PATH, std::string("editor that ") + name + " names");
            else if (words.front().find('/') != std::string::npos)
                throw Failure(ExitStatus::configuration, std::string(name) + " names the editor " + escape_for_display(words.front()) +
                                                             " by a relative path; write the absolute one");
            else
                require_program(words.front());
            return words;
        }
    }
    for (const auto *name : {"editor", "nano", "vi"})
        if (has_program(name)) return {name};
    throw Failure(ExitStatus::configuration,
                  "no editor is installed (editor, nano or vi); install one, or, as root without sudo, name one in EDITOR");
}

std::vector<std::string> terminal_variables()
{
    const auto variable = own_environment();
    std::vector<std::string> variables;
    // Terminal types and languages are such words. A slash would name a file that a library reads.
    for (const auto *name : {"TERM", "COLORTERM", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"})
        if (const auto value = variable(name); value && !value->empty() && is_made_of(*value, "._-+@"))
            variables.push_back(std::string(name) + "=" + *value);
    return variables;
}

int run_editor(const std::vector<std::string> &editor, const std::string &file)
{
    auto variables = terminal_variables();
    variables.emplace_back("HOME=/root");
    auto arguments = editor;
    arguments.push_back(file);
    return run_at_terminal(arguments, variables);
}

bool is_plain_word(const std::string &text)
{
    // Readers take these for booleans or nothing, some of them in any case. No number and no date begins as is asked below.
    for (const char *word : {"y", "yes", "n", "no", "on", "off", "true", "false", "null"})
        if (::strcasecmp(text.c_str(), word) == 0) return false;
    const auto is_letter = [](char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); };
    const bool begins = !text.empty() && (is_letter(text[0]) || text[0] == '_' || text[0] == '/' || text.starts_with("~/"));
    return begins && is_made_of(text, "/~_-.@");
}

std::string excerpt(std::string_view text, const Position &where)
{
    const auto found = where.line > 0 ? find_line(without_byte_order_mark(text), where.line) : std::nullopt;
    if (!found) return "";
    auto line = *found;
    std::vector<Cell> before;
    std::size_t width = 0; // of what is before the caret
    for (int column = 1; column < where.column && !line.empty(); ++column) {
        before.push_back(take_cell(line, width));
        width += before.back().width;
    }
    auto first = before.begin();
    const bool cut = width > most_before;
    while (width > most_before)
        width -= (first++)->width;
    std::string shown = cut ? "..." : "";
    for (auto cell = first; cell != before.end(); ++cell)
        shown += cell->text;
    const auto caret = (cut ? 3 : 0) + width;
    for (std::size_t after = 0; !line.empty();) {
        const auto cell = take_cell(line, caret + after);
        after += cell.width;
        if (after > most_after) {
            shown += "...";
            break;
        }
        shown += cell.text;
    }
    return fmt::format("{:>5} | {}\n{:>5} | {}^\n", where.line, shown, "", std::string(caret, ' '));
}

std::optional<std::string> read_again(const std::string &file)
{
    try {
        return read_draft(file);
    } catch (const Failure &) { // a diagnostic says already that it cannot be read
        return std::nullopt;
    }
}

std::string prefix_lines(const std::string &prefix, const std::string &text)
{
    std::string lines = prefix;
    for (const char byte : text)
        lines += byte == '\n' ? '\n' + prefix : std::string(1, byte);
    return lines + '\n';
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

void log_steps()
{
    // Not spdlog::stderr_logger_mt, which throws where there is one of that name: "state -v prune -v" comes here twice.
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("pi-agentctl", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
    spdlog::set_pattern("%n: %T.%e: %v");
    spdlog::set_level(spdlog::level::debug);
}

void be_quiet()
{
    // Takes everything and keeps nothing, so that a stream on it never fails.
    class Nowhere : public std::streambuf {
        int_type overflow(int_type byte) override { return traits_type::not_eof(byte); }
        std::streamsize xsputn(const char * /*bytes*/, std::streamsize count) override { return count; }
    };
    static Nowhere &nowhere = *new Nowhere; // never destroyed: the streams are flushed after all that is
    std::cout.rdbuf(&nowhere);
}

} // namespace pi_agent
