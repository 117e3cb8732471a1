// The pty of a session as the end of a tunnel's stream, on the node where the session runs.
#pragma once

#include "wrapper/session_terminal.hpp"
#include "wrapper/stream_end.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// Each piece is a packet (wrapper/session_terminal.hpp). Settings come before the bytes that they hold for.
class PtyEnd : public StreamEnd {
public:
    explicit PtyEnd(UniqueFd master) : master_(std::move(master)) {}
    [[nodiscard]] FdRef fd() const noexcept override { return master_.fd(); }
    State read(std::string &piece) override;
    State write(std::string &piece) override;

private:
    // True if the agent changed something.
    bool look_at_settings();

    PtyMaster master_;
    Pump output_;
    std::string bytes_; // read, and not told yet: behind the settings that hold for them
    std::optional<TerminalState> known_;
};

} // namespace pi_agent
