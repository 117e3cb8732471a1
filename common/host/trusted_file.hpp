// Files that only root can have written, and the commands that messages name for such files.
#pragma once

#include "common/base/channel.hpp"

#include <cstddef>

namespace pi_agent {

// --- Commands in messages. Administrators paste them as root, so a message has one only if it can do no harm: for the product's own files
// and accounts. The host, a user or an attacker may have chosen everything else, which gets words.

// "run: COMMAND PATH" if the path is in the product's own directories, has no link on the way, and is a directory or a file with a single
// name; otherwise `otherwise`.
std::string command_on(const std::string &command, const std::string &path, const std::string &otherwise);

// "run: WORDS" if pi-agent makes `account`, which they change, and no word needs a quote; otherwise `otherwise`.
std::string command_about(const std::string &account, const std::vector<std::string> &words, const std::string &otherwise);

// A user's name as a word of a command: in quotes if a shell would read something else (CORP\alice).
std::string name_as_word(const std::string &name);

// --- Opens and reads files that only root can have written: every directory and link on the way belongs to root and is not writable by
// others.

// Opens an absolute path component by component; it follows a symlink only if root owns the link and its directory.
// `flags` are open(2) flags for the last component (O_CLOEXEC is added). `what` names it in errors, e.g. "policy".
// Throws Failure(configuration) naming what someone other than root can change, or a link to nothing; SystemFailure if it does not exist.
UniqueFd open_trusted(const std::string &path, int flags, const std::string &what);

// The target of a trusted path.
struct ResolvedPath {
    std::string canonical;                    // without symlinks
    std::map<std::string, std::string> links; // the links on the way, by their own canonical paths, with their targets
    bool is_directory = false;
};
ResolvedPath resolve_trusted(const std::string &path, const std::string &what);

// Whole content of a trusted regular file, at most `limit` bytes (Failure(configuration) beyond).
std::string read_trusted_file(const std::string &path, std::size_t limit, const std::string &what);

// Names in a trusted directory that end with `suffix`, sorted bytewise; empty if the directory does not exist.
std::vector<std::string> list_trusted_directory(const std::string &path, const std::string &suffix, const std::string &what);

} // namespace pi_agent
