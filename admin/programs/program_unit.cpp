// A unit for one program, and its output; without systemd, what holds a user's program together.
#include "admin/programs/program.hpp"

#include "common/base/error.hpp"
#include "common/base/process.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/method/own_group.hpp"
#include "runner/root/method/systemd_bus.hpp"

#include <array>
#include <csignal>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::uint64_t microseconds_a_second = 1'000'000;
constexpr int stop_patience_seconds = 3; // a second more than systemd takes to stop it
constexpr int margin_seconds = 5;        // for the caller, who waits; the unit's own end is for when the caller was killed

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
        throw Failure(ExitStatus::unavailable,
                      "systemd could not start a program (" + result.result + "); find out why with: journalctl -u " + unit);
    return result.code == CLD_EXITED ? result.status : 128 + result.status;
}

SandboxResult wait_for_end(SystemdBus &systemd, UniqueFd &output, std::string &text, Deadline deadline)
{
    for (;;) {
        systemd.process();
        auto result = systemd.service_result();
        take_output(output, text);
        if (result.ended || Clock::now() >= deadline) return result;
        std::array<pollfd, 2> waits{pollfd{systemd.fd().get(), POLLIN, 0}, pollfd{output.get(), POLLIN, 0}};
        if (poll(waits.data(), waits.size(), milliseconds_left(systemd.next_look(deadline))) < 0 && errno != EINTR)
            throw_errno("waiting for a program");
    }
}

ProgramResult run_in_unit(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds)
{
    const auto script = in_memory_input(shell_script(command, program_variables()));
    auto [output, their_end] = make_pipe(O_NONBLOCK, "cannot make a pipe");
    std::string text;
    const std::string unit = "pi-agent-program-" + random_hex(8) + ".service";
    const auto deadline = in_seconds(patience_seconds);
    spdlog::debug("systemd runs {} in {}", shown_command(command), unit);
    SystemdBus systemd(root);
    systemd.watch_service(unit);
    systemd.start_program(unit, program_unit_properties(user, patience_seconds), {script, their_end, their_end});
    their_end.reset();
    const auto result = wait_for_end(systemd, output, text, deadline);
    if (!result.ended) {
        systemd.stop_unit(unit);
        wait_for_end(systemd, output, text, in_seconds(stop_patience_seconds));
        throw Failure(ExitStatus::unavailable, program_too_late);
    }
    take_output(output, text); // what came between the last look and the end
    const int status = status_of(result, unit);
    spdlog::debug("{} ended with status {}", unit, status);
    return {status, std::move(text)};
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
        {"ExecStart", Command{{"/bin/sh"}}}, // its input says what to do: no byte of others' is in a property
        {"KillMode", std::string("control-group")},
        {"KillSignal", SignedNumber{SIGKILL}}, // also what the program has left
        {"SendSIGKILL", true},
        {"TimeoutStopUSec", (stop_patience_seconds - 1) * microseconds_a_second},
        {"RuntimeMaxUSec", static_cast<std::uint64_t>(patience_seconds + margin_seconds) * microseconds_a_second},
        {"KeyringMode", std::string("private")},
    };
}

ProgramResult run_confined_to_group(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds)
{
    require_program(command.front());
    if (!defence_is_on("canary-apart")) return run_program_apart(command, patience_seconds);
    if (has_systemd() && defence_is_on("program-unit")) return run_in_unit(root, user, command, patience_seconds);
    const ProgramGroup group(root);
    if (group.entrance().empty()) return run_program_apart(command, patience_seconds);
    std::vector<std::string> entering = {"sh", "-c", "echo 0 >\"$0\" && exec \"$@\"", group.entrance()};
    entering.insert(entering.end(), command.begin(), command.end());
    return run_program_apart(entering, patience_seconds);
}

ProgramResult run_as_user(const AsRoot &root, const Account &user, const std::vector<std::string> &arguments, int patience_seconds,
                          NewPrivileges privileges)
{
    std::vector<std::string> command = {
        "setpriv",       "--reuid",    std::to_string(user.uid.value()), "--regid", std::to_string(user.gid.value()),
        "--init-groups", "--reset-env"};
    if (privileges == NewPrivileges::refused) command.emplace_back("--no-new-privs");
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_confined_to_group(root, user.uid, command, patience_seconds);
}

} // namespace pi_agent
