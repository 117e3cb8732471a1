// One direction of the terminal's bytes, with back-pressure: it reads only after it has written everything.
#pragma once

#include "common/base/fd.hpp"

#include <string_view>
#include <vector>

namespace pi_agent {

class Pump {
public:
    enum class Outcome { moved, blocked, source_ended, sink_ended };

    [[nodiscard]] bool wants_input() const noexcept { return begin_ == end_; }
    // Reads once; fresh() has the bytes.
    Outcome fill(FdRef source);
    [[nodiscard]] std::string_view fresh() const noexcept { return {buffer_.data() + begin_, end_ - begin_}; }
    // The first `count` bytes have gone elsewhere.
    void take(std::size_t count) noexcept { begin_ += count; }
    // Writes what it can; `at_once` bounds a single write, for a sink that may block.
    Outcome drain(FdRef sink, std::size_t at_once);
    // Reads once more and appends. False if nothing came, or if there is no room.
    bool fill_further(FdRef source);
    [[nodiscard]] bool ends_with(char byte) const noexcept { return begin_ != end_ && buffer_[end_ - 1] == byte; }
    // Takes out each `first` that is directly before a `second`.
    void drop_before(char first, char second) noexcept;
    // Replaces the content.
    void replace(std::string_view bytes);
    void discard() noexcept { begin_ = end_; }

private:
    static constexpr std::size_t capacity = 64UL * 1024;
    std::vector<char> buffer_ = std::vector<char>(capacity);
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

} // namespace pi_agent
