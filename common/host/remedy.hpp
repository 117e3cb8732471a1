// Commands in messages. Administrators paste them as root, so one is written out only where it can do no harm: on the product's own files
// and accounts. Everything else that a message names may be the host's, a user's or an attacker's choice, and gets words.
#pragma once

#include <string>
#include <vector>

namespace pi_agent {

// "run: COMMAND PATH" where the path lies in the product's own directories, leads there without a link that somebody put in the way, and is
// a directory or a file that has no second name; else `otherwise`.
std::string command_on(const std::string &command, const std::string &path, const std::string &otherwise);

// "run: WORDS" where `account`, which they change, is one that pi-agent makes, and no word needs a quote; else `otherwise`.
std::string command_about(const std::string &account, const std::vector<std::string> &words, const std::string &otherwise);

} // namespace pi_agent
