// Runs programs of the system for pi-agentctl, with a fixed environment, and without the settings of the administrator's shell; also as a
// user.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/unit_properties.hpp"

namespace pi_agent {

struct ProgramResult {
    int status;         // exit status, or 128 and the signal
    std::string output; // standard output and standard error together
};

// Runs `arguments` (the first names a program in the system's own directories) with `input` as its standard input, and waits for it. Throws
// Failure(configuration) if it is not installed.
ProgramResult run_program(const std::vector<std::string> &arguments, std::string_view input = {});

// The same for a program that belongs to a user, or becomes one (run_as_user), and can be traced then. It runs in a session without a
// terminal (setsid(2)) and with a session keyring of its own (session-keyring(7)). If it, or its output, does not end in time, it is killed
// with its process group. Throws Failure(unavailable) then.
ProgramResult run_program_apart(const std::vector<std::string> &arguments, int patience_seconds);

// The same at this terminal, for an editor: with this process's standard input, output and error, and `variables` ("NAME=value") beside the
// fixed ones. The first of `arguments` may be an absolute path. Keys that interrupt it do not end this process. Returns the exit status, or
// 128 and the signal.
int run_at_terminal(const std::vector<std::string> &arguments, const std::vector<std::string> &variables);

// For callers that start programs in another way: the variables ("NAME=value"), a file in memory as input, and the message about a program
// that does not end. Unlike a pipe, the file can be read at any time, and nobody waits for anybody.
std::vector<std::string> program_variables();
UniqueFd in_memory_input(std::string_view text);
inline constexpr const char *program_too_late = "a program did not end in time";
// Takes what is there, at most as much as a pipe holds, because the other end may write faster than this reads. Keeps a MiB. At the end of
// the output it closes `end`.
void take_output(UniqueFd &end, std::string &text);

// A command as it is logged: everything that could deceive a reader is escaped.
std::string shown_command(const std::vector<std::string> &words);

// Its path. Throws Failure(configuration) if the program is not installed: call it before a first change, not after it.
std::string require_program(const std::string &name);

// Whether it is installed.
bool has_program(const std::string &name);

// --- A program in a transient unit of systemd's, started by PID 1: it inherits nothing from this process's session, and leaves nothing
// behind.

// Whether this host runs systemd (sd_booted(3)).
bool has_systemd();

// The properties of that unit. Pure.
std::vector<UnitProperty> program_unit_properties(Uid user, int patience_seconds);

// What sh(1) reads to become `command`, with these variables ("NAME=value") and no other. Pure.
std::string shell_script(const std::vector<std::string> &command, const std::vector<std::string> &variables);

// --- Programs that root starts as somebody else, and whose files that account can change: apart from the administrator's session and
// control group.

// Runs `command`, which begins as root and becomes `user`. With systemd it runs in a unit of its own, in that user's slice. The unit ends
// with all that the command has started, after `patience_seconds` at the latest. Without systemd it runs in a control group of its own
// where there can be one (own_group.hpp), and as run_program_apart says. What it leaves is ended. Throws Failure(unavailable) if systemd
// does not start it, or if it, or without systemd its output, does not end in time.
ProgramResult run_confined_to_group(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds);

enum class NewPrivileges { allowed, refused }; // what it executes may gain privileges (sudo), or not (no_new_privs)

// The same as that user, with the environment of a login.
ProgramResult run_as_user(const AsRoot &root, const Account &user, const std::vector<std::string> &arguments, int patience_seconds,
                          NewPrivileges privileges);

} // namespace pi_agent
