// Which of an agent's arguments name files, and how they read where the session has copies of those files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// How the agent takes an argument that names a file.
enum class NamedAs {
    file,
    tree,    // a file, or a directory with all that is in it
    text,    // a file where one of that name exists, otherwise text
    written, // a file that the agent goes on writing
};

struct ArgumentFile {
    std::size_t argument; // index
    std::size_t begin;    // of the path in it
    std::string path;     // absolute, without `.`, `..` and double slashes, as the agent itself would read it
    NamedAs as;
};

// The files that pi's arguments name, in their order. `directory` is the caller's working directory, `home` their home. Leaves out what
// cannot be a path, and paths of more than 4095 bytes.
std::vector<ArgumentFile> find_named_files(const std::vector<std::string> &arguments, const std::string &directory,
                                           const std::string &home);

constexpr std::size_t named_files_limit = 500; // of one start

// Where the session shows copies, and the place of the copy with this number, from 1.
constexpr const char *copies_inside = "/run/pi-agent/named";
std::string place_of_copy(std::size_t number, const ArgumentFile &file);

// Puts `path` into its argument, where the argument named the file.
void rename_argument(std::vector<std::string> &arguments, const ArgumentFile &file, const std::string &path);

} // namespace pi_agent
