// A unit for one program, and what comes out of it.
#include "admin/programs/program_unit.hpp"

#include "common/base/error.hpp"
#include "common/base/process.hpp"
#include "runner/root/method/systemd_bus.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::uint64_t microseconds_a_second = 1'000'000;
constexpr int stop_patience_seconds = 3; // a second more than systemd takes to stop it
constexpr int margin_seconds = 5;        // for who waits; the unit's own end is for when that one was killed

// The end of a pipe, read without waiting.
class Output {
public:
    explicit Output(UniqueFd end) : end_(std::move(end))
    {
        if (fcntl(end_.get(), F_SETFL, O_NONBLOCK) != 0) throw_errno("preparing a pipe");
    }

    // -1 when there is nothing to wait for.
    [[nodiscard]] int fd() const noexcept { return end_ ? end_.get() : -1; }
    // Takes what is there, at most so much as a pipe holds: whoever has the other end may write faster than this reads.
    void take()
    {
        constexpr int at_once = 256;
        std::array<char, 4096> chunk{};
        for (int count = 0; end_ && count < at_once; ++count) {
            const auto size = read(end_.get(), chunk.data(), chunk.size());
            if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
            if (size < 0) throw_errno("cannot read the output of a program");
            if (size == 0) end_.reset();
            if (text_.size() < program_output_limit) text_.append(chunk.data(), static_cast<std::size_t>(size));
        }
    }
    std::string text() { return std::move(text_); }

private:
    UniqueFd end_;
    std::string text_;
};

std::string quoted_for_unit(const std::string &word)
{
    std::string text = "'";
    for (const char byte : word)
        text += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
    return text + "'";
}

int status_of(const SandboxResult &result, const std::string &unit)
{
    if (result.result == "timeout") throw Failure(ExitStatus::unavailable, program_too_late);
    if (result.code == 0)
        throw Failure(ExitStatus::unavailable, "systemd could not start a program (" + result.result + "); see: journalctl -u " + unit);
    return result.code == CLD_EXITED ? result.status : 128 + result.status;
}

SandboxResult wait_for_end(SystemdBus &systemd, Output &output, Deadline deadline)
{
    for (;;) {
        systemd.process();
        auto result = systemd.service_result();
        output.take();
        if (result.ended || Clock::now() >= deadline) return result;
        std::array<pollfd, 2> waits{pollfd{systemd.fd().get(), POLLIN, 0}, pollfd{output.fd(), POLLIN, 0}};
        if (poll(waits.data(), waits.size(), milliseconds_left(systemd.next_look(deadline))) < 0 && errno != EINTR)
            throw_errno("waiting for a program");
    }
}

} // namespace

bool has_systemd()
{
    return access("/run/systemd/system", F_OK) == 0;
}

std::string shell_script(const std::vector<std::string> &command, const std::vector<std::string> &variables)
{
    std::string script = "exec env -i";
    for (const auto *words : {&variables, &command})
        for (const auto &word : *words)
            script += " " + quoted_for_unit(word);
    return script + " </dev/null\n";
}

std::vector<UnitProperty> program_unit_properties(Uid user, int patience_seconds)
{
    return {
        {"Description", std::string("pi-agent-program")},
        {"Slice", "user-" + std::to_string(user.value()) + ".slice"}, // with the limits that this host sets its users
        {"CollectMode", std::string("inactive-or-failed")},
        {"AddRef", true}, // keeps the result readable until it is read
        {"Type", std::string("exec")},
        {"ExecStart", Command{{"/bin/sh"}}}, // what it is to do comes by its input: no byte of others' is in a property
        {"KillMode", std::string("control-group")},
        {"KillSignal", SignedNumber{SIGKILL}}, // with what the program has left, too
        {"SendSIGKILL", true},
        {"TimeoutStopUSec", (stop_patience_seconds - 1) * microseconds_a_second},
        {"RuntimeMaxUSec", static_cast<std::uint64_t>(patience_seconds + margin_seconds) * microseconds_a_second},
        {"KeyringMode", std::string("private")},
    };
}

ProgramResult run_in_unit(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds)
{
    const auto script = in_memory_input(shell_script(command, program_variables()));
    auto [own_end, their_end] = make_pipe(0, "cannot make a pipe");
    Output output(std::move(own_end));
    const std::string unit = "pi-agent-program-" + random_hex(8) + ".service";
    const auto deadline = in_seconds(patience_seconds);
    SystemdBus systemd(root);
    systemd.watch_service(unit);
    systemd.start_program(unit, program_unit_properties(user, patience_seconds), {script, their_end, their_end});
    their_end.reset();
    const auto result = wait_for_end(systemd, output, deadline);
    if (!result.ended) {
        systemd.stop_unit(unit);
        wait_for_end(systemd, output, in_seconds(stop_patience_seconds));
        throw Failure(ExitStatus::unavailable, program_too_late);
    }
    output.take(); // what came between the last look and the end
    return {status_of(result, unit), output.text()};
}

} // namespace pi_agent
