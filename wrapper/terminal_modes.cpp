// Which modes of the user's terminal the agent has changed.
#include "wrapper/terminal_modes.hpp"

#include "wrapper/control_bytes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace pi_agent {

namespace {

constexpr int keyboard_depth_limit = 16;    // terminals keep no more; an agent may say that it pushed millions
constexpr std::size_t parameter_limit = 64; // longer sequences do not matter here

// xterm's and its descendants' private modes that a shell does not expect: alternate screens, mouse, focus, paste, colour-scheme reports,
// synchronised output, cursor keys, reverse video, origin.
constexpr std::array switched_on = {1, 5, 6, 47, 1047, 1049, 9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031};
// Wrapping and the cursor, which a shell needs.
constexpr std::array switched_off = {7, 25};

template <std::size_t count>
bool holds(const std::array<int, count> &modes, int mode)
{
    return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

// Its size if not found. This search goes through all output.
std::size_t find(std::string_view output, unsigned char byte)
{
    const auto *found = static_cast<const char *>(std::memchr(output.data(), byte, output.size()));
    return found == nullptr ? output.size() : static_cast<std::size_t>(found - output.data());
}

} // namespace

void TerminalModes::watch(std::string_view output)
{
    while (!output.empty()) {
        if (state_ == State::text) {
            output.remove_prefix(find(output.substr(0, find(output, control::esc)), control::utf8_lead));
            if (output.empty()) return;
        } else if (state_ == State::control_string) {
            output.remove_prefix(std::min(output.find_first_of("\x1b\x07\x18\xc2"), output.size()));
            if (output.empty()) return;
        }
        take(static_cast<unsigned char>(output.front()));
        output.remove_prefix(1);
    }
}

void TerminalModes::take(unsigned char byte)
{
    if (byte == control::esc) {
        state_ = State::escape;
    } else if (state_ == State::text) { // only in front of a control
        state_ = State::utf8_control;
    } else if (state_ == State::utf8_control) {
        if (byte >= 0x80 && byte <= 0x9f)
            begin(static_cast<unsigned char>(byte - 0x40));
        else if (byte != control::utf8_lead)
            state_ = State::text;
    } else if (state_ == State::control_string && byte == control::utf8_lead) {
        state_ = State::utf8_in_string;
    } else if (state_ == State::utf8_in_string && byte != control::utf8_lead) {
        const bool is_end = byte == control::st || byte == control::bel || byte == control::can;
        state_ = is_end ? State::text : State::control_string;
    } else if (state_ == State::escape) {
        begin(byte);
    } else if (byte >= 0x40 && byte <= 0x7e) {
        finish(byte);
        state_ = State::text;
    } else if (byte < 0x20 || byte > 0x7e || parameters_.size() >= parameter_limit) { // a cancel or a bell among them
        state_ = State::text;
    } else {
        parameters_.push_back(static_cast<char>(byte));
    }
}

void TerminalModes::begin(unsigned char byte)
{
    parameters_.clear();
    switch (byte) {
    case '[':
        state_ = State::sequence;
        return;
    case ']': // operating system command, device control and application strings
    case 'P':
    case 'X':
    case '^':
    case '_':
        state_ = State::control_string;
        return;
    case 'c': // a full reset
        *this = TerminalModes();
        return;
    case '=':
    case '>':
        keypad_ = byte == '=';
        break;
    default:
        break;
    }
    state_ = State::text;
}

void TerminalModes::finish(unsigned char final_byte)
{
    if (final_byte == 'm' && parameters_.find_first_not_of("0123456789;:") == std::string::npos)
        coloured_ = !parameters_.empty() && parameters_ != "0";
    if (parameters_.empty()) return;
    const char kind = parameters_[0];
    const std::string rest = parameters_.substr(1);
    if (kind == '?' && (final_byte == 'h' || final_byte == 'l')) {
        set_private_modes(final_byte == 'h');
    } else if (final_byte == 'u' && kind == '>') {
        keyboard_depth_ = std::min(keyboard_depth_ + 1, keyboard_depth_limit);
        keyboard_flags_ = rest;
    } else if (final_byte == 'u' && kind == '<') {
        if (rest.size() > 3 || rest.find_first_not_of("0123456789") != std::string::npos) return; // not what a terminal takes
        const int popped = rest.empty() ? 1 : std::stoi(rest);
        keyboard_depth_ = popped >= keyboard_depth_ ? 0 : keyboard_depth_ - popped;
    } else if (final_byte == 'm' && kind == '>' && !rest.empty() && rest[0] == '4') {
        const bool reset = rest == "4" || rest == "4;0";
        other_keys_ = reset ? "" : rest;
    }
}

void TerminalModes::set_private_modes(bool on)
{
    std::size_t start = 1;
    while (start < parameters_.size()) {
        const std::size_t end = std::min(parameters_.find(';', start), parameters_.size());
        int mode = 0;
        std::from_chars(parameters_.data() + start, parameters_.data() + end, mode);
        if (holds(switched_on, mode)) {
            if (on)
                on_.insert(mode);
            else
                on_.erase(mode);
        } else if (holds(switched_off, mode)) {
            if (on)
                off_.erase(mode);
            else
                off_.insert(mode);
        }
        start = end + 1;
    }
}

std::string TerminalModes::leave_sequence() const
{
    std::string text;
    if (state_ != State::text && state_ != State::utf8_control) text += static_cast<char>(control::can);
    if (coloured_) text += "\x1b[0m";
    if (keypad_) text += "\x1b>";
    for (int count = 0; count < keyboard_depth_; ++count)
        text += "\x1b[<u";
    if (!other_keys_.empty()) text += "\x1b[>4;0m";
    // Reports first, the alternate screen last: what follows is drawn on the screen that the shell had.
    for (auto mode = on_.rbegin(); mode != on_.rend(); ++mode)
        if (*mode != 47 && *mode != 1047 && *mode != 1049) text += "\x1b[?" + std::to_string(*mode) + "l";
    for (const int mode : off_)
        text += "\x1b[?" + std::to_string(mode) + "h";
    for (const int mode : {47, 1047, 1049})
        if (on_.contains(mode)) text += "\x1b[?" + std::to_string(mode) + "l";
    return text;
}

std::string TerminalModes::enter_sequence() const
{
    std::string text;
    if (keypad_) text += "\x1b=";
    for (const int mode : {1049, 1047, 47})
        if (on_.contains(mode)) text += "\x1b[?" + std::to_string(mode) + "h";
    for (const int mode : on_)
        if (mode != 47 && mode != 1047 && mode != 1049) text += "\x1b[?" + std::to_string(mode) + "h";
    for (const int mode : off_)
        text += "\x1b[?" + std::to_string(mode) + "l";
    for (int count = 0; count < keyboard_depth_; ++count)
        text += "\x1b[>" + keyboard_flags_ + "u";
    if (!other_keys_.empty()) text += "\x1b[>" + other_keys_ + "m";
    return text;
}

} // namespace pi_agent
