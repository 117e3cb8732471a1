// What of the host a session sees and where it is mounted, with the places and files that the caller's shell and arguments name.
#pragma once

#include "runner/plan/environment.hpp"
#include "runner/plan/sandbox_plan.hpp"

namespace pi_agent {

// --- What of the host a session sees, read-only: the rules, by paths alone (runner/root/view/root_tree.hpp looks at the host).

// Programs and their libraries: in every view. The symlinks of a merged /usr are made again as symlinks.
inline constexpr std::array<std::string_view, 9> program_trees = {"/usr",   "/opt",   "/bin",    "/sbin",     "/lib",
                                                                  "/lib32", "/lib64", "/libx32", "/nix/store"};

struct HostView {
    View view = View::minimal;
    // What is shown besides, at its own place: view_paths, and what the agent's program and certificates need. No tree is below another
    // one.
    std::set<std::string> trees;
    std::map<std::string, std::string> links; // symlinks on the way to those, with their texts
};

// True when sessions see the host's `path` (canonical).
bool is_shown(const HostView &view, const std::string &path);

// The same, without the view's own trees.
bool is_shown_by(View view, std::string_view path);

// What the minimal view shows of a directory, by its path below /etc ("php/8.4/cli"): all of it, or nothing but what it leads to.
enum class ShownOfEtc { nothing, way, whole };
ShownOfEtc shown_of_etc(std::string_view path);

// What to show of a place with a program in it, by its path alone: the directory that holds its bin, or its outermost node_modules;
// otherwise the program's own directory. Never a directory at the top of the host.
std::string tree_of_program(const std::string &path);

// The interpreter that a script names after `#!`; empty for any other file.
std::string interpreter_of(std::string_view first_bytes);

// --- The mount points that keep an agent from what is protected and masked in a project.
enum class PointKind { prefix, read_only };

// Every mount point that these paths need, parents before what is in them: the paths read-only, and each directory above one as it is. A
// directory that is not a mount point could be renamed and replaced. A path in a read-only one needs no mount point. `kept`: directories
// that only must stay where they are, and those above them. Throws Failure(limit) for more than `most`.
std::map<std::string, PointKind> plan_points(const std::vector<std::string> &read_only, const std::vector<std::string> &kept = {},
                                             std::size_t most = guard_limit);

// --- The name under which the agent's home has a project: ~/projects/NAME-HASH, the same at every start.

constexpr const char *alias_directory = "projects"; // beneath the home

// "demo-1f3a99c2" for the canonical path (any bytes) of a project: its last component, as far as its characters are harmless, and a hash of
// the whole path (FNV-1a, 64 bits, folded), because many directories share a name. The hash only keeps them apart; it protects nothing.
std::string alias_of(const std::string &project_path);

// --- The single files of /etc in the minimal view: which ones, and the text of those that are the session's own.

// Names below /etc of the files that are copied from the host.
std::vector<std::string> shown_etc_files();

// Copies of what packages have in /etc and nobody changed, which apply and dpkg make (admin/host/package_files.cpp). Sessions see them at
// the same place, and links in a session's /etc lead there.
constexpr const char *package_files_directory = "/var/lib/pi-agent/etc";

// A line of passwd(5) or group(5) for each of these and nobody else. The accounts come from the host's user database, wherever it keeps
// them. Names that these files cannot hold are left out.
std::string passwd_text(const std::vector<Account> &accounts, const std::string &agent_name, const std::string &agent_home);
std::string group_text(const std::vector<std::pair<std::string, Gid>> &groups);

// --- Where the temporary directory is that a user names (--pi-agent-tmpdir), by its name alone.

// Throws Failure(denied): "denied: --pi-agent-tmpdir: ".
[[noreturn]] void refuse_tmpdir(const std::string &problem);

// `named` beneath the root, without "." and "..": relative to the working directory, or absolute. Throws Failure(denied) when it is outside
// what is shown.
std::string place_of_tmpdir(const std::string &named, const std::string &shown_path, const std::string &below);

// --- fd and rg, with which the agent searches. When it starts, it downloads those that the host lacks, or waits long for a network that it
// may not use.

// For an administrator: what is missing, and which package brings it.
std::string name_package(const std::string &missing);

// Where the policy restricts the network and one of them is missing, stops the agent from downloading and waiting. Each layer of the
// environment can override that.
void keep_from_downloading(EnvironmentInput &environment, const NetworkPolicy &network, const std::vector<std::string> &missing);

// --- Places that the caller's shell names: its PATH, its editor, and git's variables, as one of git's hooks has them.

// The host's path of a tree that the session shows, and its path inside; any bytes.
using ShownAs = std::pair<std::string, std::string>;

// By paths alone: nothing is opened, because root must not follow what is in a project or a home. Inside, a symlink leads nowhere else.
struct PlacesInside {
    std::vector<ShownAs> work;       // the project first, then git directories elsewhere
    std::vector<ShownAs> toolchains; // of the caller's home
    const HostView &view;
    std::string below;                                    // the working directory, beneath the project
    std::function<bool(const std::string &)> has_program; // whether the host's directories of PATH have one of this name
};

struct ShellPlaces {
    std::vector<std::string> presentation; // NAME=VALUE: those that name no place, and git's and the editor's where shown
    std::vector<std::string> path;         // of PATH, in its order, each by its path inside
    std::vector<std::string> notices;      // of what is left out
};

// Judges `variables`, as the request has them (common/base/request.hpp). Git's come all together or not at all: an index of one repository
// with the directory of another would make a commit that nobody meant.
ShellPlaces judge_shell_places(const std::vector<std::string> &variables, const PlacesInside &places);

// --- Which of an agent's arguments name files, and how they read where the session has copies of those files.

// How the agent takes an argument that names a file.
enum class NamedAs {
    file,
    tree,    // a file, or a directory with all that is in it
    text,    // a file where one of that name exists, otherwise text
    written, // a file that the agent goes on writing
    place,   // a directory that the agent writes to, and makes
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
