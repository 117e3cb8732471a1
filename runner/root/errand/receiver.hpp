// The runner's end of the caller's side (runner/as_user/project.hpp).
#pragma once

#include "common/base/request.hpp"
#include "common/decide/decision.hpp"
#include "runner/root/errand/errand.hpp"

#include <string>
#include <variant>

namespace pi_agent {

// What the wrapper's side has to tell while a session runs.
struct StdioHandedOver {};
struct WrapperGone {};                                                         // or it broke the protocol
using ReceiverEvent = std::variant<StdioHandedOver, WrapperGone, std::string>; // a message's bytes, without descriptors

// Owns the child. In this order: request(), then the answers of open_as_caller (runner/as_user/project.hpp)
// and of send_home (runner/wire/opened.hpp), then start_handover() and receive().
class Receiver {
public:
    // `wrapper` is borrowed; from here on nobody else may receive from it.
    Receiver(const AsRoot &root, const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper);

    // Waits for the request, its standard descriptors checked. Throws what is wrong with it.
    Request request();
    // Makes the child send its standard descriptors to pi-agent-exec over `control` and let go of them. Does not wait: an event tells.
    void start_handover(FdRef control);
    // The next event; called when channel() has input.
    ReceiverEvent receive();
    [[nodiscard]] FdRef channel() const noexcept { return child_.channel(); }
    [[nodiscard]] Child &child() noexcept { return child_; }

private:
    Child child_;
};

} // namespace pi_agent
