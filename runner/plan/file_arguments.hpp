// Which of an agent's arguments name files, and how they read where the session has copies of those files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// --- Which arguments an agent takes as files, according to its own help: lists of options, with one space between them.

struct FileArguments {
    std::string_view prefix;   // of an argument that is a file by itself; empty for none
    std::string_view files;    // the next argument is a file
    std::string_view trees;    // a file, or a directory with all that is in it
    std::string_view texts;    // a file where one of that name exists, otherwise text
    std::string_view written;  // a file that the agent goes on writing
    std::string_view others;   // the next argument names no file that is read
    std::string_view commands; // as the first argument: all that follow belong to it
};

// pi 0.73 to 0.87 (`pi --help`).
inline constexpr FileArguments pi_file_arguments = {
    "@",
    "--fork --export",
    "--extension -e --skill --prompt-template --theme",
    "--append-system-prompt --system-prompt",
    "--session",
    "--provider --model --api-key --mode --name -n --session-id --session-dir --models --tools -t --exclude-tools -xt --thinking "
    "--use-theme --tui-mode",
    "install remove uninstall update list config auth",
};

// --- The files of one start.

enum class NamedAs { file, tree, text, written };

struct ArgumentFile {
    std::size_t argument; // index
    std::size_t begin;    // of the path in it
    std::string path;     // absolute, without `.`, `..` and double slashes, as the agent itself would read it
    NamedAs as;
};

// The files in their order. `directory` is the caller's working directory, `home` their home. Leaves out what cannot be a path, and paths
// of more than 4095 bytes.
std::vector<ArgumentFile> find_named_files(const std::vector<std::string> &arguments, const FileArguments &known,
                                           const std::string &directory, const std::string &home);

constexpr std::size_t named_files_limit = 500; // of one start

// Where the session shows copies, and the place of the copy with this number, from 1.
constexpr const char *copies_inside = "/run/pi-agent/named";
std::string place_of_copy(std::size_t number, const ArgumentFile &file);

// Puts `path` into its argument, where the argument named the file.
void rename_argument(std::vector<std::string> &arguments, const ArgumentFile &file, const std::string &path);

} // namespace pi_agent
