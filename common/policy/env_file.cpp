// A reader for environment files, as a state machine like systemd's (src/basic/env-file.c).
#include "common/policy/env_file.hpp"

#include "common/policy/policy_sections.hpp"

namespace pi_agent {

namespace {

constexpr std::size_t assignment_limit = std::size_t{128} << 10U; // MAX_ARG_STRLEN: "NAME=value" and its NUL (execve(2))
constexpr std::string_view blanks = " \t\n\r";
constexpr std::string_view newlines = "\n\r";

bool is_utf8(std::string_view bytes) noexcept
{
    while (!bytes.empty()) {
        const std::size_t length = decode_utf8(bytes).length;
        if (length == 0) return false;
        bytes.remove_prefix(length);
    }
    return true;
}

bool is_one_of(char byte, std::string_view bytes) noexcept
{
    return bytes.find(byte) != std::string_view::npos;
}

class EnvFileParser {
public:
    EnvFileParser(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

    std::vector<EnvAssignment> parse()
    {
        while (!at_end())
            parse_line();
        return std::move(found_);
    }

private:
    [[nodiscard]] std::string place(int line) const { return name_ + ":" + std::to_string(line); }

    [[noreturn]] static void refuse(const EnvAssignment &assignment, const std::string &problem)
    {
        throw Failure(ExitStatus::configuration, assignment.where + ": " + problem);
    }

    [[nodiscard]] bool at_end() const noexcept { return at_ == text_.size(); }
    [[nodiscard]] char next() const noexcept { return text_[at_]; }
    char take() noexcept
    {
        const char byte = text_[at_++];
        if (byte == '\n') ++line_;
        return byte;
    }

    void parse_line()
    {
        const char byte = next();
        if (is_one_of(byte, blanks)) {
            take();
        } else if (byte == '#' || byte == ';') {
            skip_comment();
        } else {
            parse_assignment();
        }
    }

    // To the end of its line, also after a backslash, as systemd does since 254.
    void skip_comment()
    {
        while (!at_end() && !is_one_of(take(), newlines)) {
        }
    }

    void parse_assignment()
    {
        const int line = line_;
        EnvAssignment assignment{"", "", place(line)};
        while (!at_end() && next() != '=' && !is_one_of(next(), newlines))
            assignment.name += take();
        if (at_end() || next() != '=') refuse(assignment, "this line has no '='; write NAME=value, or begin a comment with '#'");
        take();
        while (!assignment.name.empty() && is_one_of(assignment.name.back(), blanks))
            assignment.name.pop_back();
        if (!is_variable_name(assignment.name))
            refuse(assignment,
                   assignment.name.starts_with("export ")
                       ? "the text before '=' is not the name of a variable; write NAME=value, without 'export'"
                       : "the text before '=' is not the name of a variable: use letters, digits and '_', not beginning with a digit");
        parse_value(assignment);
        check(assignment);
        found_.push_back(std::move(assignment));
    }

    // Quoted and plain parts follow each other: a quote opens only where nothing plain came before it.
    void parse_value(EnvAssignment &assignment)
    {
        std::string &value = assignment.value;
        while (!at_end() && !is_one_of(next(), newlines)) {
            const char byte = take();
            if (byte == '\'' || byte == '"') {
                parse_quoted(byte, assignment);
            } else if (!is_one_of(byte, blanks)) {
                --at_;
                return parse_plain(value);
            }
        }
        if (!at_end()) take();
    }

    void parse_quoted(char quote, EnvAssignment &assignment)
    {
        for (;;) {
            if (at_end()) refuse(assignment, std::string("the quote ") + quote + " is not closed");
            const char byte = take();
            if (byte == quote) return;
            if (quote == '\'' || byte != '\\') {
                assignment.value += byte;
                continue;
            }
            if (at_end()) refuse(assignment, "the quote \" is not closed");
            const char escaped = take();
            if (is_one_of(escaped, "\"\\`$"))
                assignment.value += escaped;
            else if (escaped != '\n')
                (assignment.value += '\\') += escaped;
        }
    }

    void parse_plain(std::string &value)
    {
        std::size_t kept = value.size(); // up to here without the blanks at the end
        while (!at_end() && !is_one_of(next(), newlines)) {
            const char byte = take();
            if (byte != '\\') {
                value += byte;
                if (!is_one_of(byte, blanks)) kept = value.size();
                continue;
            }
            if (at_end()) break;
            const char escaped = take();
            if (!is_one_of(escaped, newlines)) value += escaped;
            kept = value.size(); // what is escaped stays
        }
        value.resize(kept);
        if (!at_end()) take();
    }

    static void check(const EnvAssignment &assignment)
    {
        if (assignment.name.size() + assignment.value.size() + 2 > assignment_limit)
            refuse(assignment, "the value of " + assignment.name.substr(0, 100) + " is longer than a program can be given (128 KiB)");
        if (!is_utf8(assignment.value)) refuse(assignment, "the value of " + assignment.name + " is not UTF-8");
        for (const char byte : assignment.value) {
            const auto number = static_cast<unsigned char>(byte);
            if ((number < 0x20 && byte != '\t' && byte != '\n') || number == 0x7F)
                refuse(assignment, "the value of " + assignment.name + " holds a control character");
        }
    }

    std::string_view text_;
    std::string name_;
    std::size_t at_ = 0;
    int line_ = 1;
    std::vector<EnvAssignment> found_;
};

} // namespace

std::vector<EnvAssignment> parse_env_file(std::string_view text, const std::string &name)
{
    if (text.find('\0') != std::string_view::npos) throw Failure(ExitStatus::configuration, name + ": holds a NUL byte");
    return EnvFileParser(text, name).parse();
}

} // namespace pi_agent
