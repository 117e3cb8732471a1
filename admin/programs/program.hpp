// Runs programs of the system for pi-agentctl, with a fixed environment, and without the settings of the administrator's shell; also as a
// user.
#pragma once

#include "runner/root/method/sandbox.hpp"

namespace pi_agent {

struct ProgramResult {
    int status;         // exit status, or 128 and the signal
    std::string output; // standard output and standard error together
};

// Runs `arguments` (the first names a program in the system's own directories) with `input` as its standard input, and waits for it. Throws
// Failure(configuration) if it is not installed.
ProgramResult run_program(const std::vector<std::string> &arguments, std::string_view input = {});
// The same for one that must succeed: returns its output, or throws Failure, which has that after `problem`.
std::string require_success(const std::vector<std::string> &arguments, const std::string &problem, std::string_view input = {},
                            ExitStatus status = ExitStatus::system_failure);

// The same for a program that belongs to a user, or becomes one (run_as_user), and can be traced then. It runs in a session without a
// terminal (setsid(2)) and with a session keyring of its own (session-keyring(7)). If it, or its output, does not end in time, it is killed
// with its process group. Throws Failure(unavailable) then.
ProgramResult run_program_apart(const std::vector<std::string> &arguments, int patience_seconds);

// The same at this terminal, for an editor: with this process's standard input, output and error, and `variables` ("NAME=value") beside the
// fixed ones. The first of `arguments` may be an absolute path. Keys that interrupt it do not end this process. Returns the exit status, or
// 128 and the signal. `output`: becomes what it writes to its standard output, instead of the terminal.
int run_at_terminal(const std::vector<std::string> &arguments, const std::vector<std::string> &variables, std::string *output = nullptr);

// A text in memory as the input of a program: unlike a pipe, it can be read at any time, and nobody waits for anybody.
UniqueFd in_memory_input(std::string_view text);
// By which a program opens it, while this process holds it.
std::string path_of_input(FdRef input);

// What diff(1) says of two texts (--text --unified), with more `options`. Throws Failure(configuration) where it is not installed.
ProgramResult run_diff_program(const std::string &old_text, const std::string &new_text, const std::vector<std::string> &options);

// Its path. Throws Failure(configuration) if the program is not installed: call it before a first change, not after it.
std::string require_program(const std::string &name);

// Whether it is installed.
bool has_program(const std::string &name);

// --- A program in a transient unit of systemd's, started by PID 1: it inherits nothing from this process's session, and leaves nothing
// behind.

// Whether this host runs systemd (sd_booted(3)).
bool has_systemd();

class UnitProgram {
public:
    // Starts it with these properties, with `input` as its standard input.
    UnitProgram(const AsRoot &root, const std::string &unit, const std::vector<UnitProperty> &properties, std::string_view input);
    // Until the unit's end, or until the deadline. Calls `meanwhile`, if there is one, several times a second, which may take output.
    SandboxResult wait(Deadline deadline, const std::function<void()> &meanwhile = {});
    void stop() { systemd_.stop_unit(unit_); }
    // Its standard output and error so far, of which it keeps a MiB.
    std::string output;

private:
    std::string unit_;
    SystemdBus systemd_;
    UniqueFd pipe_;
};

// The properties of the unit of a program that becomes a user. Pure.
std::vector<UnitProperty> program_unit_properties(Uid user, int patience_seconds);

// What sh(1) reads to become `command`, with these variables ("NAME=value") and no other. Pure.
std::string shell_script(const std::vector<std::string> &command, const std::vector<std::string> &variables);

// --- Programs that root starts as somebody else, and whose files that account can change: apart from the administrator's session and
// control group.

// Runs `command`, which begins as root and becomes `user`. With systemd it runs in a unit of its own, in that user's slice. The unit ends
// with all that the command has started, after `patience_seconds` at the latest. Without systemd it runs in a control group of its own
// where there can be one (host_facts.hpp), and as run_program_apart says. What it leaves is ended. Throws Failure(unavailable) if
// systemd does not start it, or if it, or without systemd its output, does not end in time.
ProgramResult run_confined_to_group(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds);

enum class NewPrivileges { allowed, refused }; // what it executes may gain privileges (sudo), or not (no_new_privs)

// The same as that user, with the environment of a login.
ProgramResult run_as_user(const AsRoot &root, const Account &user, const std::vector<std::string> &arguments, int patience_seconds,
                          NewPrivileges privileges);

} // namespace pi_agent
