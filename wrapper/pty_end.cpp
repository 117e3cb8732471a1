// A pty's output and settings, and what is typed.
#include "wrapper/pty_end.hpp"

#include "wrapper/user_terminal.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <utility>

namespace pi_agent {

StreamEnd::State PtyEnd::read(std::string &piece)
{
    if (!known_) return State::blocked; // the agent starts once the wrapper has said how its terminal begins
    if (bytes_.empty()) {
        const Pump::Outcome outcome = output_.fill(master_.fd());
        if (outcome == Pump::Outcome::source_ended) return State::ended;
        if (outcome == Pump::Outcome::moved) master_.fill_pair(output_);
        bytes_ = output_.fresh();
        output_.discard();
        if (look_at_settings()) {
            piece = encode_state(*known_);
            return State::moved;
        }
    }
    if (bytes_.empty()) return State::blocked;
    std::size_t size = std::min(bytes_.size(), terminal_bytes_limit);
    if (size < bytes_.size() && bytes_[size - 1] == '\r') --size; // not cut from its newline
    piece = bytes_tag + bytes_.substr(0, size);
    bytes_.erase(0, size);
    return State::moved;
}

StreamEnd::State PtyEnd::write(std::string &piece)
{
    if (piece.starts_with(bytes_tag)) {
        const ssize_t count = ::write(master_.fd().get(), piece.data() + 1, piece.size() - 1);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return State::blocked;
        if (count < 0) return State::ended;
        piece.erase(1, static_cast<std::size_t>(count));
        if (piece.size() == 1) piece.clear();
        return State::moved;
    }
    if (piece.starts_with(size_tag))
        master_.resize(decode_size(piece));
    else if (master_.change_to(decode_state(piece).settings) && !known_)
        look_at_settings(); // the wrapper knows them; later it may have heard of the agent's own meanwhile, and is told again
    piece.clear();
    return State::moved;
}

bool PtyEnd::look_at_settings()
{
    const std::optional<termios> now = master_.settings();
    if (!now) return false;
    const TerminalState state{*now, master_.has_other_foreground()};
    if (known_ && are_same(state.settings, known_->settings) && state.other_foreground == known_->other_foreground) return false;
    known_ = state;
    return true;
}

} // namespace pi_agent
