// Finding the control strings for the clipboard, as terminals find them: controls in between do not end them (ECMA-48, the VT500 parser).
#include "wrapper/clipboard_filter.hpp"

#include "wrapper/control_bytes.hpp"

#include <algorithm>
#include <utility>

namespace pi_agent {

namespace {

using namespace control; // NOLINT(google-build-using-namespace): the alphabet of this file

constexpr std::string_view ended_for_everybody = "\x18\x1b\\"; // CAN for terminals, ST for tmux and screen, which pass a CAN on
constexpr std::size_t held_limit = 64;                         // a sequence that is longer before it says what it is has something to hide

bool ends_any_sequence(unsigned char byte)
{
    return byte == can || byte == sub;
}

bool is_passed_over(unsigned char byte)
{
    return (byte < 0x20 && byte != bel && byte != esc && !ends_any_sequence(byte)) || byte == 0x7f;
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

} // namespace

std::string ClipboardFilter::filter(std::string_view output)
{
    std::string out;
    out.reserve(output.size() + held_.size());
    while (!output.empty()) {
        if (state_ == State::text) { // most of it
            const auto *const special = std::find_if(output.begin(), output.end(), [](char c) {
                const auto byte = static_cast<unsigned char>(c);
                return byte == esc || byte == utf8_lead || byte == osc || byte == dcs;
            });
            const auto length = static_cast<std::size_t>(special - output.begin());
            if (length > 0) last_ = static_cast<unsigned char>(output[length - 1]);
            out += output.substr(0, length);
            output.remove_prefix(length);
            if (output.empty()) break;
        }
        const auto byte = static_cast<unsigned char>(output.front());
        take(byte, out);
        last_ = byte;
        output.remove_prefix(1);
    }
    return out;
}

void ClipboardFilter::hold(unsigned char byte)
{
    held_.push_back(static_cast<char>(byte));
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
    out.push_back(static_cast<char>(can));
    held_.clear();
    prefix_.clear();
    state_ = State::dropping;
}

void ClipboardFilter::take(unsigned char byte, std::string &out)
{
    switch (state_) {
    case State::text:
        if (byte == esc || byte == utf8_lead) {
            hold(byte);
            state_ = byte == esc ? State::escape : State::utf8_control;
        } else if (byte == osc && is_control()) {
            hold(byte);
            state_ = State::prefix;
        } else {
            out.push_back(static_cast<char>(byte));
            if (byte == dcs && is_control()) state_ = State::device;
        }
        return;
    case State::utf8_control:
        if (byte == osc) {
            hold(byte);
            state_ = State::prefix;
            return;
        }
        let_go(out);
        if (byte != dcs) return take(byte, out);
        out.push_back(static_cast<char>(byte));
        state_ = State::device;
        return;
    case State::escape:
        if (byte == ']' || byte == '%' || byte == bel || is_passed_over(byte)) { // it rings in between
            if (held_.size() >= held_limit) return drop(out);
            hold(byte);
            if (byte == ']') state_ = State::prefix;
            if (byte == '%') state_ = State::coding;
            return;
        }
        let_go(out);
        if (byte != 'P') return take(byte, out);
        out.push_back(static_cast<char>(byte));
        state_ = State::device;
        return;
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
        hold(esc); // it ended the string, and begins another sequence
        state_ = State::escape;
        return take(byte, out);
    }
}

// A byte of 0x80 to 0x9f is a control but where it is a part of a character.
bool ClipboardFilter::is_control() const
{
    return !utf8_ || last_ < 0x80;
}

// Where the terminal left UTF-8 (ISO 2022), other bytes would be controls: it stays in it.
void ClipboardFilter::take_in_coding(unsigned char byte, std::string &out)
{
    if (byte == '/' || byte == bel || is_passed_over(byte)) {
        if (held_.size() >= held_limit) return drop(out);
        return hold(byte);
    }
    const bool is_change = byte > 0x20 && byte < 0x7f && (byte != 'G' || held_.find('/') != std::string::npos);
    if (is_change) {
        held_.clear();
        out.push_back(static_cast<char>(can));
        state_ = State::text;
        return;
    }
    let_go(out);
    take(byte, out);
}

// screen passes on what is in a device control string, tmux what is in one of its own: where a control begins in it, as in none that is a
// terminal's own, it is ended, and the control is looked at like any other.
void ClipboardFilter::take_in_device_string(unsigned char byte, std::string &out)
{
    if (state_ == State::device_escape && byte == '\\') {
        hold(byte);
        return let_go(out);
    }
    const bool begins_control = state_ == State::device_escape || (state_ == State::device_utf8 && (byte == osc || byte == dcs)) ||
                                (state_ == State::device && (byte == osc || byte == dcs) && is_control());
    if (begins_control) {
        const std::string held = std::exchange(held_, {});
        out += ended_for_everybody;
        state_ = State::text;
        for (const char one : held)
            take(static_cast<unsigned char>(one), out);
        return take(byte, out);
    }
    const bool was_character = state_ == State::device_utf8;
    if (byte == esc || byte == utf8_lead) {
        out += std::exchange(held_, {});
        hold(byte);
        state_ = byte == esc ? State::device_escape : State::device_utf8;
        return;
    }
    hold(byte);
    out += std::exchange(held_, {});
    const bool is_end = ends_any_sequence(byte) || (byte == st && (was_character || is_control()));
    state_ = is_end ? State::text : State::device;
}

void ClipboardFilter::take_in_prefix(unsigned char byte, std::string &out)
{
    if (byte == bel || byte == esc || ends_any_sequence(byte)) { // over before it said anything
        let_go(out);
        return take(byte, out);
    }
    hold(byte);
    if (!is_passed_over(byte)) prefix_.push_back(static_cast<char>(byte));
    const Meaning meaning = meaning_of(prefix_);
    if (meaning == Meaning::clipboard || held_.size() >= held_limit) return drop(out);
    if (meaning != Meaning::other) return;
    held_.pop_back();
    let_go(out);
    take(byte, out); // it may begin another
}

} // namespace pi_agent
