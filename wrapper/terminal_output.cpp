// Finds controls for the clipboard and for modes, as terminals find them (ECMA-48, the VT500 parser).
#include "wrapper/terminal_link.hpp"

#include <algorithm>
#include <charconv>

namespace pi_agent {

namespace {

// Bytes that begin and end controls.
constexpr char bel = '\x07';
constexpr char can = '\x18';
constexpr char sub = '\x1a';
constexpr char esc = '\x1b';
constexpr char utf8_lead = '\xc2'; // of U+0080 to U+00BF, the 8-bit controls among them: each means ESC and a letter
constexpr char dcs = '\x90';
constexpr char st = '\x9c';
constexpr char osc = '\x9d';

constexpr std::string_view ended_for_everybody = "\x18\x1b\\"; // CAN for terminals, ST for tmux and screen, which pass a CAN on
constexpr std::size_t held_limit = 64;                         // a sequence that is longer before it says what it is has something to hide

bool ends_any_sequence(char byte)
{
    return byte == can || byte == sub;
}

bool is_passed_over(char byte)
{
    return (static_cast<unsigned char>(byte) < 0x20 && byte != bel && byte != esc && !ends_any_sequence(byte)) || byte == 0x7f;
}

enum class Meaning { unknown, clipboard, other };

Meaning meaning_of(const std::string &prefix)
{
    constexpr std::string_view copy = "Copy";
    const std::size_t end = prefix.find_first_not_of("0123456789");
    if (end == std::string::npos) return Meaning::unknown;
    if (prefix[end] != ';') return Meaning::other;
    const std::size_t begin = std::min(prefix.find_first_not_of('0'), end);
    const std::string name = prefix.substr(begin, end - begin);
    if (name == "52" || name == "5522") return Meaning::clipboard;
    if (name != "1337") return Meaning::other;
    const std::string key = prefix.substr(end + 1, copy.size());
    if (key == copy) return Meaning::clipboard;
    return key.size() < copy.size() && copy.substr(0, key.size()) == key ? Meaning::unknown : Meaning::other;
}

constexpr int keyboard_depth_limit = 16;    // terminals keep no more; an agent may say that it pushed millions
constexpr std::size_t parameter_limit = 64; // longer sequences do not matter here

// Private modes of xterm and its descendants that differ from a shell's, in the order in which they are undone: colour-scheme reports,
// synchronised output, paste, mouse, focus, origin, reverse video, cursor keys; wrapping and the cursor, which a shell needs; the alternate
// screens last, because what follows is drawn on the screen that the shell had.
constexpr std::array private_modes = {2031, 2026, 2004, 1016, 1015, 1006, 1005, 1004, 1003, 1002, 1001,
                                      1000, 9,    6,    5,    1,    7,    25,   47,   1047, 1049};

constexpr bool is_on_in_shell(int mode) noexcept
{
    return mode == 7 || mode == 25;
}

std::string switch_mode(int mode, bool on)
{
    return "\x1b[?" + std::to_string(mode) + (on ? "h" : "l");
}

// Its size if not found. This search goes through all output.
std::size_t find(std::string_view output, char byte)
{
    return std::min(output.find(byte), output.size());
}

} // namespace

// Finding the control strings for the clipboard, as terminals find them: controls in between do not end them (ECMA-48, the VT500 parser).

std::string ClipboardFilter::filter(std::string_view output)
{
    std::string out;
    out.reserve(output.size() + held_.size());
    while (!output.empty()) {
        if (state_ == State::text) { // most of it
            const auto *const special = std::find_if(
                output.begin(), output.end(), [](char byte) { return byte == esc || byte == utf8_lead || byte == osc || byte == dcs; });
            const auto length = static_cast<std::size_t>(special - output.begin());
            if (length > 0) last_ = output[length - 1];
            out += output.substr(0, length);
            output.remove_prefix(length);
            if (output.empty()) break;
        }
        take(output.front(), out);
        last_ = output.front();
        output.remove_prefix(1);
    }
    return out;
}

void ClipboardFilter::hold(char byte, State state)
{
    held_.push_back(byte);
    state_ = state;
}

void ClipboardFilter::pass(char byte, State state, std::string &out)
{
    out.push_back(byte);
    state_ = state;
}

void ClipboardFilter::let_go(std::string &out)
{
    out += held_;
    held_.clear();
    prefix_.clear();
    state_ = State::text;
}

void ClipboardFilter::drop(std::string &out)
{
    out.push_back(can);
    held_.clear();
    prefix_.clear();
    state_ = State::dropping;
}

void ClipboardFilter::take(char byte, std::string &out)
{
    switch (state_) {
    case State::text:
        if (byte == esc || byte == utf8_lead) return hold(byte, byte == esc ? State::escape : State::utf8_control);
        if (byte == osc && is_control()) return hold(byte, State::prefix);
        return pass(byte, byte == dcs && is_control() ? State::device : State::text, out);
    case State::utf8_control:
        if (byte == osc) return hold(byte, State::prefix);
        let_go(out);
        return byte == dcs ? pass(byte, State::device, out) : take(byte, out);
    case State::escape:
        if (byte == ']' || byte == '%' || byte == bel || is_passed_over(byte)) { // it rings in between
            if (held_.size() >= held_limit) return drop(out);
            return hold(byte, byte == ']' ? State::prefix : byte == '%' ? State::coding : State::escape);
        }
        let_go(out);
        return byte == 'P' ? pass(byte, State::device, out) : take(byte, out);
    case State::coding:
        return take_in_coding(byte, out);
    case State::device:
    case State::device_escape:
    case State::device_utf8:
        return take_in_device_string(byte, out);
    case State::prefix:
        return take_in_prefix(byte, out);
    case State::dropping:
        if (byte == bel || ends_any_sequence(byte)) state_ = State::text;
        if (byte == esc) state_ = State::dropping_escape;
        if (byte == utf8_lead) state_ = State::dropping_utf8;
        return;
    case State::dropping_utf8:
        state_ = byte == st ? State::text : State::dropping;
        if (state_ == State::dropping) take(byte, out);
        return;
    case State::dropping_escape:
        state_ = State::text;
        if (byte == '\\') return;
        held_.push_back(esc); // it ended the string, and begins another sequence
        state_ = State::escape;
        return take(byte, out);
    }
}

// A byte of 0x80 to 0x9f is a control but where it is a part of a character.
bool ClipboardFilter::is_control() const
{
    return !utf8_ || static_cast<unsigned char>(last_) < 0x80;
}

// Where the terminal left UTF-8 (ISO 2022), other bytes would be controls: it stays in it.
void ClipboardFilter::take_in_coding(char byte, std::string &out)
{
    if (byte == '/' || byte == bel || is_passed_over(byte)) {
        if (held_.size() >= held_limit) return drop(out);
        return held_.push_back(byte);
    }
    const bool is_change = byte > 0x20 && byte < 0x7f && (byte != 'G' || held_.find('/') != std::string::npos);
    if (is_change) {
        held_.clear();
        out.push_back(can);
        state_ = State::text;
        return;
    }
    let_go(out);
    take(byte, out);
}

// screen passes on what is in a device control string, tmux what is in one of its own: where a control begins in it, as in none that is a
// terminal's own, it is ended, and the control is looked at like any other.
void ClipboardFilter::take_in_device_string(char byte, std::string &out)
{
    if (state_ == State::device_escape && byte == '\\') {
        held_.push_back(byte);
        return let_go(out);
    }
    const bool begins_control = state_ == State::device_escape || (state_ == State::device_utf8 && (byte == osc || byte == dcs)) ||
                                (state_ == State::device && (byte == osc || byte == dcs) && is_control());
    if (begins_control) {
        const std::string held = std::exchange(held_, {});
        out += ended_for_everybody;
        state_ = State::text;
        for (const char one : held)
            take(one, out);
        return take(byte, out);
    }
    const bool was_character = state_ == State::device_utf8;
    if (byte == esc || byte == utf8_lead) {
        out += std::exchange(held_, {});
        held_.push_back(byte);
        state_ = byte == esc ? State::device_escape : State::device_utf8;
        return;
    }
    held_.push_back(byte);
    out += std::exchange(held_, {});
    const bool is_end = ends_any_sequence(byte) || (byte == st && (was_character || is_control()));
    state_ = is_end ? State::text : State::device;
}

void ClipboardFilter::take_in_prefix(char byte, std::string &out)
{
    if (byte == bel || byte == esc || ends_any_sequence(byte)) { // over before it said anything
        let_go(out);
        return take(byte, out);
    }
    held_.push_back(byte);
    if (!is_passed_over(byte)) prefix_.push_back(byte);
    const Meaning meaning = meaning_of(prefix_);
    if (meaning == Meaning::clipboard || held_.size() >= held_limit) return drop(out);
    if (meaning != Meaning::other) return;
    held_.pop_back();
    let_go(out);
    take(byte, out); // it may begin another
}

// Which modes of the user's terminal the agent has changed.

void TerminalModes::watch(std::string_view output)
{
    while (!output.empty()) {
        if (state_ == State::text) {
            output.remove_prefix(find(output.substr(0, find(output, esc)), utf8_lead));
            if (output.empty()) return;
        } else if (state_ == State::control_string) {
            output.remove_prefix(std::min(output.find_first_of("\x1b\x07\x18\xc2"), output.size()));
            if (output.empty()) return;
        }
        take(output.front());
        output.remove_prefix(1);
    }
}

void TerminalModes::take(char byte)
{
    if (byte == esc) {
        state_ = State::escape;
    } else if (state_ == State::text) { // only in front of a control
        state_ = State::utf8_control;
    } else if (state_ == State::utf8_control) {
        if (const auto code = static_cast<unsigned char>(byte); code >= 0x80 && code <= 0x9f)
            begin(static_cast<char>(code - 0x40));
        else if (byte != utf8_lead)
            state_ = State::text;
    } else if (state_ == State::control_string && byte == utf8_lead) {
        state_ = State::utf8_in_string;
    } else if (state_ == State::utf8_in_string && byte != utf8_lead) {
        const bool is_end = byte == st || byte == bel || byte == can;
        state_ = is_end ? State::text : State::control_string;
    } else if (state_ == State::escape) {
        begin(byte);
    } else if (byte >= 0x40 && byte <= 0x7e) {
        finish(byte);
        state_ = State::text;
    } else if (byte < 0x20 || byte > 0x7e || parameters_.size() >= parameter_limit) { // a cancel or a bell among them
        state_ = State::text;
    } else {
        parameters_.push_back(byte);
    }
}

void TerminalModes::begin(char byte)
{
    parameters_.clear();
    if (byte == 'c') { // a full reset
        *this = TerminalModes();
        return;
    }
    if (byte == '=' || byte == '>') keypad_ = byte == '=';
    // Operating system command, device control and application strings.
    const bool begins_string = std::string_view("]PX^_").find(byte) != std::string_view::npos;
    state_ = byte == '[' ? State::sequence : begins_string ? State::control_string : State::text;
}

void TerminalModes::finish(char final_byte)
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
        const auto *const known = std::find(private_modes.begin(), private_modes.end(), mode);
        if (known != private_modes.end()) changed_.at(static_cast<std::size_t>(known - private_modes.begin())) = on != is_on_in_shell(mode);
        start = end + 1;
    }
}

std::string TerminalModes::leave_sequence() const
{
    std::string text;
    if (state_ != State::text && state_ != State::utf8_control) text += can;
    if (coloured_) text += "\x1b[0m";
    if (keypad_) text += "\x1b>";
    for (int count = 0; count < keyboard_depth_; ++count)
        text += "\x1b[<u";
    if (!other_keys_.empty()) text += "\x1b[>4;0m";
    for (std::size_t index = 0; index < private_modes.size(); ++index)
        if (changed_.at(index)) text += switch_mode(private_modes.at(index), is_on_in_shell(private_modes.at(index)));
    return text;
}

std::string TerminalModes::enter_sequence() const
{
    std::string text;
    if (keypad_) text += "\x1b=";
    for (std::size_t index = private_modes.size(); index-- > 0;)
        if (changed_.at(index)) text += switch_mode(private_modes.at(index), !is_on_in_shell(private_modes.at(index)));
    for (int count = 0; count < keyboard_depth_; ++count)
        text += "\x1b[>" + keyboard_flags_ + "u";
    if (!other_keys_.empty()) text += "\x1b[>" + other_keys_ + "m";
    return text;
}

} // namespace pi_agent
