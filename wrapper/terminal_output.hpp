// What the agent writes to the user's terminal: without the clipboard's controls, and with the modes that must end with it.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace pi_agent {

// Removes from the agent's output what would reach the clipboard of the user's terminal. Reads the byte stream of one terminal, split
// anywhere. A control string for the clipboard (OSC 52; OSC 5522, kitty; OSC 1337 with Copy, iTerm2) is left out to its end. A CAN replaces
// it, so that the bytes before and after it do not join. A CAN also replaces what makes the terminal leave UTF-8. A passthrough of tmux or
// screen ends before its content, because two of them make one control string outside. All other bytes stay as they are.
class ClipboardFilter {
public:
    // Without utf8 the terminal reads every byte from 0x80 to 0x9f as a control (ECMA-48).
    explicit ClipboardFilter(bool utf8 = true) noexcept : utf8_(utf8) {}
    [[nodiscard]] std::string filter(std::string_view output);

private:
    void take(char byte, std::string &out);
    [[nodiscard]] bool is_control() const;
    void take_in_coding(char byte, std::string &out);
    void take_in_device_string(char byte, std::string &out);
    void take_in_prefix(char byte, std::string &out);
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
    char last_ = 0;
};

// Watches the agent's output for terminal modes that outlive a program, so that a dead agent leaves a usable terminal behind. Reads the
// byte stream of one terminal (ECMA-48 control sequences, split anywhere) and remembers which modes differ from a shell's.
class TerminalModes {
public:
    void watch(std::string_view output);
    // Undoes the modes that are on (alternate screen, mouse and paste reports, hidden cursor, keyboard protocols, colours) and ends a
    // control string that was cut off. Empty if there is nothing to undo.
    [[nodiscard]] std::string leave_sequence() const;
    // Restores them after leave_sequence, for example when a stopped agent continues.
    [[nodiscard]] std::string enter_sequence() const;

private:
    void take(char byte);
    void begin(char byte);
    void finish(char final_byte);
    void set_private_modes(bool on);

    enum class State { text, utf8_control, escape, sequence, control_string, utf8_in_string };
    State state_ = State::text;
    std::string parameters_;     // between ESC [ and the final byte, bounded
    std::set<int> on_;           // private modes that were switched on and are off in a shell
    std::set<int> off_;          // private modes that were switched off and are on in a shell
    int keyboard_depth_ = 0;     // pushed entries of the kitty keyboard protocol
    std::string keyboard_flags_; // of the last push
    std::string other_keys_;     // xterm's modifyOtherKeys resource, when set
    bool coloured_ = false;      // colours or other attributes of characters are set
    bool keypad_ = false;        // sends application sequences
};

} // namespace pi_agent
