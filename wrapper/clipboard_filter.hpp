// Takes out of the agent's output what would reach the clipboard of its user's terminal.
#pragma once

#include <string>
#include <string_view>

namespace pi_agent {

// Reads the byte stream of one terminal, split anywhere. A control string for the clipboard (OSC 52; OSC 5522, kitty; OSC 1337 with Copy,
// iTerm2) is left out, to its end, also inside a passthrough of tmux or screen; a CAN stands in its place, so that what was before and
// what comes behind do not become one. All other bytes stay as they are.
class ClipboardFilter {
public:
    [[nodiscard]] std::string filter(std::string_view output);

private:
    void take(unsigned char byte, std::string &out);
    void take_in_prefix(unsigned char byte, std::string &out);
    void hold(unsigned char byte);
    void let_go(std::string &out);
    void drop(std::string &out);

    enum class State { text, escape, utf8_control, prefix, dropping, dropping_escape, dropping_utf8 };
    State state_ = State::text;
    std::string held_;   // of what may become such a string; bounded
    std::string prefix_; // what says which control string it is
    unsigned char last_ = 0;
};

} // namespace pi_agent
