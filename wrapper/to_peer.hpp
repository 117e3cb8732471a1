// What the wrapper says to its peer: the request, then messages. Never waits for it: sudo may not have started the runner yet.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/request.hpp"

#include <array>
#include <string>
#include <vector>

namespace pi_agent {

class ToPeer {
public:
    // Borrows the descriptors until the first go_on(): a fresh socket always takes the packet that carries them.
    ToPeer(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio);
    ToPeer(const ToPeer &) = delete;
    ToPeer &operator=(const ToPeer &) = delete;
    // Sends what the peer takes of the request now.
    void go_on();
    [[nodiscard]] bool has_asked() const noexcept { return has_asked_; }
    // After the request. best_effort: a peer that is gone is seen by its end of the channel.
    void tell(const WrapperMessage &message);

private:
    FdRef channel_;
    const std::string bytes_;
    OutgoingRecord request_;
    std::vector<WrapperMessage> untold_;
    bool has_asked_ = false;
};

// The agent has them now; a copy kept here would keep a pipe open after it.
void let_go_of_input_and_output();

} // namespace pi_agent
