// The agent's output: however it is cut, the same modes are seen, what is said to undo them does, and what brings them back does.
#include "support/property.hpp"
#include "wrapper/terminal_modes.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::fuzz;

void pi_agent::fuzz::try_input(std::string_view input)
{
    TerminalModes whole;
    whole.watch(input);
    TerminalModes in_pieces;
    for (std::size_t at = 0, length = 1; at < input.size(); at += length, length = length % 7 + 1)
        in_pieces.watch(input.substr(at, length));
    const std::string leaving = whole.leave_sequence();
    require(in_pieces.leave_sequence() == leaving && in_pieces.enter_sequence() == whole.enter_sequence(),
            "output in pieces is other output");
    require(leaving.size() < 512 && whole.enter_sequence().size() < 2048, "a sequence that grows with the output");
    const auto is_plain = [](unsigned char byte) { return byte == 0x1b || byte == 0x18 || (byte >= 0x20 && byte <= 0x7e); };
    for (const auto &sequence : {leaving, whole.enter_sequence()})
        require(std::all_of(sequence.begin(), sequence.end(), is_plain), "a sequence with bytes that are none of ours");

    TerminalModes left = whole;
    left.watch(leaving);
    require(left.leave_sequence().empty(),
            "a mode is left behind: " + left.leave_sequence().substr(0, left.leave_sequence().find('\x1b', 1)));
    TerminalModes again = left;
    again.watch(whole.enter_sequence());
    TerminalModes ended = whole; // without what colours and a cut sequence add, which do not come back
    ended.watch("\x18\x1b[0m");
    require(again.leave_sequence() == ended.leave_sequence(), "a mode does not come back");
    require_linear(input, [](const std::string &many) { TerminalModes().watch(many); });
}
