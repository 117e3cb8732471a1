// Which sudo the wrapper starts: the original, or sudo-rs, which reads the same files but knows fewer settings.
#pragma once

#include <string>
#include <vector>

namespace pi_agent {

enum class SudoKind {
    original,
    rs, // sudo-rs: it leaves out, and complains of, each line that has a setting it does not know
};

// From what `sudo --version` prints. Pure.
SudoKind sudo_kind_of(const std::string &version);

// Of the program that the wrapper runs. Where there is none, nobody can start anything, and it counts as the original.
SudoKind installed_sudo_kind();

// The visudo that judges as that sudo does: a host may have both.
std::string visudo_of(SudoKind kind);

// The file that it begins with.
std::string main_sudoers_of(SudoKind kind);

// Whether that sudo reads `path`, the installed rule, when its `visudo -c` printed `checked`. sudo-rs names no file there, so it is asked
// what `users`, the policy's, may run; without any there is nobody whom the rule could be for, and the answer is yes.
bool does_sudo_read(SudoKind kind, const std::string &path, const std::string &checked, const std::vector<std::string> &users);

} // namespace pi_agent
