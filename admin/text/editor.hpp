// Which editor an administrator gets, and starting it.
#pragma once

#include "common/base/fd.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// The value of a variable of the environment, none when it is not set.
using Variable = std::function<std::optional<std::string>(const std::string &name)>;
Variable own_environment();

// The program and its arguments, the file to edit not among them. root's own SUDO_EDITOR, VISUAL or EDITOR, the first that is set, divided
// at spaces; a program of the system's directories, or an absolute path that only root can change. Where somebody else has called root's
// program (sudo, doas, pkexec: their variables say so) these values may be that caller's, kept by a rule that was not made for this: then,
// and where none is set, the first that is installed of editor, nano and vi. Throws Failure(configuration) when there is none.
std::vector<std::string> choose_editor(const Variable &variable);

// Runs it on `file` at this terminal, as root, and waits; with nothing of the environment but the terminal's type and the language, for an
// editor does what many variables say. Returns its exit status, 128 and the number for a signal.
int run_editor(const std::vector<std::string> &editor, const std::string &file, const Variable &variable);

} // namespace pi_agent
