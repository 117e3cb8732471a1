// Watches the agent's output for terminal modes that outlive a program, so that a dead agent leaves a usable terminal behind.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace pi_agent {

// Reads the byte stream of one terminal (ECMA-48 control sequences, split anywhere) and remembers which modes differ from a shell's.
class TerminalModes {
public:
    void watch(std::string_view output);
    // Undoes the modes that are on (alternate screen, mouse and paste reports, hidden cursor, keyboard protocols, colours) and ends a
    // control string that was cut off. Empty if there is nothing to undo.
    [[nodiscard]] std::string leave_sequence() const;
    // Restores them after leave_sequence, for example when a stopped agent continues.
    [[nodiscard]] std::string enter_sequence() const;

private:
    void take(unsigned char byte);
    void begin(unsigned char byte);
    void finish(unsigned char final_byte);
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
