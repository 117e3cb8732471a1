// The session's launcher (pi-agent-exec) as its runner hears it. The agent may stop it, or take it over.
#pragma once

#include "common/base/channel.hpp"
#include "runner/wire/launch_record.hpp"

#include <functional>
#include <optional>

namespace pi_agent {

class Launcher {
public:
    explicit Launcher(FdRef control) noexcept : control_(control) {} // borrowed
    // For poll(2); none once it has closed, or broken the protocol.
    [[nodiscard]] FdRef fd() const noexcept { return is_open_ ? control_ : FdRef(-1); }
    [[nodiscard]] bool is_open() const noexcept { return is_open_; }

    // What has come, if anything. Never waits.
    std::optional<ExecMessage> receive();
    // Hears what came before all was over. Whoever got hold of the launcher's socket may go on sending.
    void hear_last_words(const std::function<void(const ExecMessage &)> &hear);
    // Throws Failure when it does not read.
    void send(const WrapperMessage &message);
    void send_best_effort(const WrapperMessage &message) noexcept;

    // --- A signal that asks for the end, until the launcher says that it has passed it on.

    void expect_answer(const WrapperMessage &message);
    // False where none was expected.
    bool take_answer() noexcept;
    [[nodiscard]] Deadline answer_due() const noexcept { return due_; }
    // The signal whose answer is late, once.
    std::optional<int> take_unanswered();

private:
    FdRef control_;
    bool is_open_ = true;
    std::optional<int> unanswered_;
    Deadline due_ = Deadline::max();
};

} // namespace pi_agent
