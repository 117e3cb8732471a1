// The agent's output: however it is cut, the same modes are seen, what is said to undo them does, and what brings them back does; the same
// is kept from the clipboard, and nothing that reaches it is left.
#include "support/property.hpp"
#include "wrapper/terminal_link.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

// What a terminal would take for the beginning of one, told in another way than the filter does.
bool reaches_clipboard(std::string_view output)
{
    std::string without_ignored; // but for the 8-bit forms, which depend on what is before
    for (const char c : output) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 || byte == 0x07 || byte == 0x18 || byte == 0x1a || byte == 0x1b)
            if (byte != 0x7f) without_ignored.push_back(c);
    }
    for (const std::string_view begin : {"\x1b]", "\xc2\x9d"})
        for (std::size_t at = without_ignored.find(begin); at != std::string::npos; at = without_ignored.find(begin, at + 1)) {
            const std::size_t number = std::min(without_ignored.find_first_not_of('0', at + begin.size()), without_ignored.size());
            for (const std::string_view kind : {"52;", "5522;", "1337;Copy"})
                if (without_ignored.compare(number, kind.size(), kind) == 0) return true;
        }
    return false;
}

void try_filter(std::string_view input)
{
    const std::string kept = ClipboardFilter().filter(input);
    ClipboardFilter cut;
    std::string in_pieces;
    for (std::size_t at = 0, length = 1; at < input.size(); at += length, length = length % 7 + 1)
        in_pieces += cut.filter(input.substr(at, length));
    require(in_pieces == kept, "output in pieces is filtered otherwise");
    require(!reaches_clipboard(kept), "the clipboard is reached");
    const bool may_begin_one = input.find_first_of("\x1b\x90\x9d\xc2") != std::string_view::npos;
    require(may_begin_one || kept == input, "output that begins no sequence is changed");
    require_linear(input, [](const std::string &many) { static_cast<void>(ClipboardFilter().filter(many)); });
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    try_filter(input);
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
