// Commands in messages. Administrators paste them as root, so a message has one only if it can do no harm: for the product's own files and
// accounts. The host, a user or an attacker may have chosen everything else, which gets words.
#pragma once

#include <string>
#include <vector>

namespace pi_agent {

// "run: COMMAND PATH" if the path is in the product's own directories, has no link on the way, and is a directory or a file with a single
// name; otherwise `otherwise`.
std::string command_on(const std::string &command, const std::string &path, const std::string &otherwise);

// "run: WORDS" if pi-agent makes `account`, which they change, and no word needs a quote; otherwise `otherwise`.
std::string command_about(const std::string &account, const std::vector<std::string> &words, const std::string &otherwise);

// A user's name as a word of a command: in quotes if a shell would read something else (CORP\alice).
std::string name_as_word(const std::string &name);

} // namespace pi_agent
