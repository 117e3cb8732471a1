// What a relay has read and the other side has not taken yet, and how much a relay may read at once, so that all of it stays bounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pi_agent {

// Every relay may read a piece, and hold it, in each direction. A stream passes faster by reads that are larger: fewer of them, and fewer
// awakenings of both sides (docs/benchmarks-results.md). So a relay reads much at once, as long as there is little that all relays
// together hold beyond their pieces. All in bytes.
constexpr std::size_t one_piece = std::size_t{64} << 10U;
constexpr std::size_t most_at_once = std::size_t{512} << 10U;
constexpr std::size_t most_beyond = std::size_t{16} << 20U;

class Held {
public:
    Held() = default;
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;
    ~Held();

    // How much may be read now, for one direction that holds nothing: `most_at_once` or `one_piece`.
    static std::size_t room();

    bool is_empty() const { return taken_ == bytes_.size(); }
    std::string_view rest() const { return std::string_view(bytes_).substr(taken_); }
    void append(std::string_view bytes);
    void replace(std::string bytes);
    // The first `count` of the rest are written. Nothing is kept of what is written whole.
    void take(std::size_t count);

private:
    void count();

    std::string bytes_ = {};
    std::size_t taken_ = 0, beyond_ = 0;
};

} // namespace pi_agent
