// The other name of the command: `wrapper.command_name`, with its completions and its page of the manual.
#pragma once

#include "admin/host/root_files.hpp"

namespace pi_agent {

// Where the wrapper and what belongs to it are installed, and the file that has the names that apply made: nothing else is ever removed.
struct CommandPlaces {
    std::string wrapper; // the program; another name is a symlink beside it
    std::string data;    // the directory with completions and manual
    std::string note;
};
CommandPlaces places_of_command(); // of this build

// Reports a name that something else on this host has, and any other name where the system's configuration makes the command.
void check_command_name(const Policy &policy, const CommandPlaces &places, Problems &problems);

// Makes the name, and takes away what an earlier apply made under another name. A completion or page of that name which another program
// brought stays as it is. Throws Failure(configuration) if something else has the command's name.
void install_command(const AsRoot &root, const std::string &name, const CommandPlaces &places, Changes &changes);

// What the command is called here: as apply called it, or as the wrapper is called.
std::string noted_command(const AsRoot &root, const CommandPlaces &places);

// Takes away all that it made.
void remove_command(const AsRoot &root, const CommandPlaces &places, Changes &changes);

} // namespace pi_agent
