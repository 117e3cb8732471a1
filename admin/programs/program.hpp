// Runs programs of the system for pi-agentctl, with a fixed environment and nothing of the administrator's shell; also as a user.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/unit_properties.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pi_agent {

struct ProgramResult {
    int status;         // exit code, or 128 and the signal
    std::string output; // stdout and stderr together
};

// Runs `arguments` (the first names a program in the system's own directories) with `input` as its standard input, and waits for it.
// Throws Failure(configuration) when it is not installed.
ProgramResult run_program(const std::vector<std::string> &arguments, std::string_view input = {});

// The same for a program that is a user's, or becomes one (run_as_user), and can be traced then: in a session without a terminal
// (setsid(2)) and with a session keyring of its own (session-keyring(7)), and killed with its process group when it, or its output, is not
// at the end in time. Throws Failure(unavailable) then.
ProgramResult run_program_apart(const std::vector<std::string> &arguments, int patience_seconds);

// The same at this terminal, for an editor: with this process' standard input, output and error, and `variables` ("NAME=value") beside the
// fixed ones. The first of `arguments` may be an absolute path. What is typed to interrupt it does not end this process. Returns the exit
// code, or 128 and the signal.
int run_at_terminal(const std::vector<std::string> &arguments, const std::vector<std::string> &variables);

// For who starts programs by another way: their variables ("NAME=value"), a file in memory that is their input (instead of a pipe: a
// program may read it whenever it likes, and nobody waits for anybody), and what is said of one that does not end.
std::vector<std::string> program_variables();
UniqueFd in_memory_input(std::string_view text);
inline constexpr const char *program_too_late = "a program did not end in time";
// Takes what is there, at most so much as a pipe holds: whoever has the other end may write faster than this reads. A MiB is kept; at the
// end of the output `end` is closed.
void take_output(UniqueFd &end, std::string &text);

// A command as it is logged: with everything escaped that could deceive a reader.
std::string shown_command(const std::vector<std::string> &words);

// Its path. Throws Failure(configuration) when the program is not installed: to be called before a first change, not after it.
std::string require_program(const std::string &name);

// Whether it is installed.
bool has_program(const std::string &name);

// --- A program in a transient unit of systemd's, started by PID 1: it takes nothing of this process's session, and leaves nothing behind.

// Whether this host runs systemd (sd_booted(3)).
bool has_systemd();

// Of that unit. Pure.
std::vector<UnitProperty> program_unit_properties(Uid user, int patience_seconds);

// What sh(1) reads to become `command`, with these variables ("NAME=value") and no other. Pure.
std::string shell_script(const std::vector<std::string> &command, const std::vector<std::string> &variables);

// --- Programs that root starts as somebody else, and whose files those can change: apart from the administrator's session and control
// group.

// Runs `command`, which begins as root and becomes `user`: where systemd runs in a unit of its own, in the slice of that user, with which
// all that it has started ends, after `patience_seconds` too; elsewhere in a control group of its own where there can be one
// (own_group.hpp), and as run_program_apart says. What it leaves is ended. Throws Failure(unavailable) when systemd does not start it, or
// when it, or in the absence of systemd its output, is not at the end in time.
ProgramResult run_confined_to_group(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds);

enum class NewPrivileges { allowed, refused }; // what it executes may gain some (sudo), or not (no_new_privs)

// The same as that user, with the environment of a login.
ProgramResult run_as_user(const AsRoot &root, const Account &user, const std::vector<std::string> &arguments, int patience_seconds,
                          NewPrivileges privileges);

} // namespace pi_agent
