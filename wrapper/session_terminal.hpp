// The terminal of a session as its wrapper holds it: the pty's master, here or on a node of the cluster.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"
#include "common/base/request.hpp"
#include "wrapper/pump.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <termios.h>

namespace pi_agent {

class SessionTerminal {
public:
    SessionTerminal() = default;
    SessionTerminal(const SessionTerminal &) = delete;
    SessionTerminal &operator=(const SessionTerminal &) = delete;
    virtual ~SessionTerminal() = default;

    [[nodiscard]] virtual FdRef fd() const noexcept = 0; // for poll(2)
    virtual Pump::Outcome fill(Pump &output) = 0;
    // Reads on after a carriage return at the end: it and its newline may be cut in two.
    virtual void fill_pair(Pump &output) = 0;
    virtual Pump::Outcome drain(Pump &input) = 0;
    // None once the agent is gone.
    [[nodiscard]] virtual std::optional<termios> settings() const = 0;
    // False if it cannot be changed (errno).
    virtual bool change_to(const termios &settings) = 0;
    virtual void resize(const WindowSize &size) noexcept = 0; // a pty whose agent is gone needs no size
    // Another group than the one that leads the session, pi-agent-exec's, is in the foreground.
    [[nodiscard]] virtual bool has_other_foreground() const = 0;
    // Whether the end of the agent's output is told, however late it comes.
    [[nodiscard]] virtual bool tells_its_end() const noexcept = 0;
};

// On this host.
class PtyMaster : public SessionTerminal {
public:
    explicit PtyMaster(UniqueFd master);
    [[nodiscard]] FdRef fd() const noexcept override { return master_; }
    Pump::Outcome fill(Pump &output) override { return output.fill(master_); }
    void fill_pair(Pump &output) override;
    Pump::Outcome drain(Pump &input) override;
    [[nodiscard]] std::optional<termios> settings() const override;
    bool change_to(const termios &settings) override;
    void resize(const WindowSize &size) noexcept override;
    [[nodiscard]] bool has_other_foreground() const override;
    [[nodiscard]] bool tells_its_end() const noexcept override { return false; }

private:
    UniqueFd master_;
};

// On a node: a socket of packets, which a carrier takes there (wrapper/carrier.hpp).
class DistantTerminal : public SessionTerminal {
public:
    explicit DistantTerminal(UniqueFd socket) : socket_(std::move(socket)) {}
    [[nodiscard]] FdRef fd() const noexcept override { return socket_; }
    Pump::Outcome fill(Pump &output) override;
    void fill_pair(Pump & /*output*/) override {} // the node does not cut them
    Pump::Outcome drain(Pump &input) override;
    [[nodiscard]] std::optional<termios> settings() const override { return known_; }
    bool change_to(const termios &settings) override;
    void resize(const WindowSize &size) noexcept override;
    [[nodiscard]] bool has_other_foreground() const override { return other_foreground_; }
    [[nodiscard]] bool tells_its_end() const noexcept override { return true; }

private:
    UniqueFd socket_;
    std::optional<termios> known_;
    bool other_foreground_ = false;
};

// Which of them this descriptor is.
std::unique_ptr<SessionTerminal> open_session_terminal(UniqueFd fd);

// --- The packets: the first byte says which.

constexpr char bytes_tag = 'B';                                // followed by what was typed, or shown
constexpr std::size_t terminal_bytes_limit = packet_limit / 2; // of those
constexpr char settings_tag = 'S';
constexpr char size_tag = 'W';

struct TerminalState {
    termios settings{};
    bool other_foreground = false;
};
std::string encode_state(const TerminalState &state); // with its tag
std::string encode_size(const WindowSize &size);
// Of a packet with that tag. Throw ProtocolError for another.
TerminalState decode_state(std::string_view packet);
WindowSize decode_size(std::string_view packet);

} // namespace pi_agent
