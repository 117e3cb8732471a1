// What is at one end of a tunnel's stream: a pipe, a file, a socket, a terminal.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"

#include <string>

namespace pi_agent {

constexpr std::size_t piece_limit = packet_limit; // bytes that a stream carries at once

// What is at this end of a stream. Nothing here waits.
class StreamEnd {
public:
    enum class State { moved, blocked, ended };

    StreamEnd() = default;
    StreamEnd(const StreamEnd &) = delete;
    StreamEnd &operator=(const StreamEnd &) = delete;
    virtual ~StreamEnd() = default;

    [[nodiscard]] virtual FdRef fd() const noexcept = 0;
    // Reads one piece.
    virtual State read(std::string &piece) = 0;
    // Takes what it can from the beginning of `piece`.
    virtual State write(std::string &piece) = 0;
};

// A pipe, a file, a socket: a descriptor of this process's, or one that others also have, whose flags stay as they are.
class DescriptorEnd : public StreamEnd {
public:
    enum class For { reading, writing, packets };
    DescriptorEnd(UniqueFd fd, For purpose);
    [[nodiscard]] FdRef fd() const noexcept override { return fd_; }
    State read(std::string &piece) override;
    State write(std::string &piece) override;

private:
    UniqueFd fd_;
    bool is_socket_ = false;
    bool may_block_ = false;
};

} // namespace pi_agent
