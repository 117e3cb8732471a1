// Removes from the agent's output what would reach the clipboard of the user's terminal.
#pragma once

#include <string>
#include <string_view>

namespace pi_agent {

// Reads the byte stream of one terminal, split anywhere. A control string for the clipboard (OSC 52; OSC 5522, kitty; OSC 1337 with Copy,
// iTerm2) is left out to its end. A CAN replaces it, so that the bytes before and after it do not join. A CAN also replaces what makes the
// terminal leave UTF-8. A passthrough of tmux or screen ends before its content, because two of them make one control string outside. All
// other bytes stay as they are.
class ClipboardFilter {
public:
    // Without utf8 the terminal reads every byte from 0x80 to 0x9f as a control (ECMA-48).
    explicit ClipboardFilter(bool utf8 = true) noexcept : utf8_(utf8) {}
    [[nodiscard]] std::string filter(std::string_view output);

private:
    void take(unsigned char byte, std::string &out);
    [[nodiscard]] bool is_control() const;
    void take_in_coding(unsigned char byte, std::string &out);
    void take_in_device_string(unsigned char byte, std::string &out);
    void take_in_prefix(unsigned char byte, std::string &out);
    void hold(unsigned char byte);
    void let_go(std::string &out);
    void drop(std::string &out);

    enum class State {
        text,
        escape,
        utf8_control,
        coding,
        prefix,
        device,
        device_escape,
        device_utf8,
        dropping,
        dropping_escape,
        dropping_utf8
    };
    bool utf8_;
    State state_ = State::text;
    std::string held_;   // the beginning of a possible control string; bounded
    std::string prefix_; // shows which control string it is
    unsigned char last_ = 0;
};

} // namespace pi_agent
