// What a caller hands over, opened again as the caller: descriptors, working directory, roots, or a question.
#pragma once

#include "common/decide/decision.hpp"
#include "runner/wire/answer.hpp"
#include "runner/wire/user_files.hpp"

namespace pi_agent {

// --- Opens the working directory and the roots again as the caller (design rules 6 and 7).

// In a child that is the caller: opens the working directory, each root that is there and what git knows, and answers with them.
// `claimed_cwd` came from the caller: its link text, device, inode and mount id must be those of the path opened here.
void open_as_caller(const Account &caller, const AccessRules &rules, FdRef claimed_cwd, FdRef channel);

// --- Takes everything that the wrapper sends, as the caller. Root never holds a descriptor of a user's, not even to close it: close(2) of
// a file of theirs may wait for them (FUSE, FLUSH), beyond SIGKILL, and a socket may linger (SO_LINGER, socket(7)).

// In a child that is the caller, from the request to the session's end. `wrapper`: its socket; `channel` leads to the runner
// (runner/root/errand/errand.hpp).
void serve_caller(const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper, FdRef channel);

// --- Which descriptors a caller may hand to the agent as standard input, output and error (design rule 4).

// Throws Failure(denied) unless each is a FIFO, regular file, socket, or /dev/null, /dev/zero or /dev/full. A directory reaches host files
// through "..", an O_PATH descriptor is a directory in disguise, and a terminal can be typed into. Descriptors on the user's terminal were
// not sent: the session's own terminal replaces them.
void check_stdio(const std::array<UniqueFd, 3> &stdio, const OnTerminal &on_terminal);

// As the caller: lets the agent open the caller's own anonymous pipes by name (/dev/stdout, /dev/stderr), for what it may do with them
// anyway. Files keep the modes that the caller gave them.
void let_pipes_be_opened(const std::array<UniqueFd, 3> &stdio);

// --- Which git repository a working directory belongs to, and where git keeps that repository's data: found as its user.

// Both run with the user's rights. Anybody, also an agent, may have written `.git` and what it names. So a git directory is believed only
// where it names this repository in turn (a worktree's `gitdir`, a submodule's core.worktree) and has what git wants of a git directory: an
// agent that never saw it cannot have caused both. None where no directory up to the file system's own top has a `.git`.
Repository find_repository(FdRef cwd);

// --- Finds, as the user, which directories of the home the tools inside are shown (policy: toolchains).

// With the rights of `user`, who this process must be. Follows no symlink below the home: an agent that can write where one leads could
// change where it leads. A directory that a mount made identical with one that must stay hidden, or with one above it, is a problem.
// And data of others (`readable` outside of the home), reached as roots are: by no link that others than root can change. Not inside of the
// user's roots, whose rules hold there.
OpenedHome find_home_directories(const Account &user, const ToolchainsPolicy &toolchains, const AccessRules &rules);

// --- The temporary directory that a user names (--pi-agent-tmpdir), made as that user inside the root that the session mounts.

// As the caller: makes only what they could make themselves. `place` beneath `root`; `mask` is the caller's umask. Throws Failure(denied)
// when it cannot be made there, or is not the caller's own directory.
void make_user_tmpdir(const Account &caller, FdRef root, const std::string &place, unsigned mask);

// Takes a question about their own sessions out of the caller's socket, as the caller (runner/root/own/questions.hpp).

// In a child that is the caller: root never holds a descriptor of a user's (design rule 4), and a question may come with some.
// Throws ProtocolError for anything but one question without a descriptor.
OwnQuestion receive_question(FdRef wrapper);

} // namespace pi_agent
