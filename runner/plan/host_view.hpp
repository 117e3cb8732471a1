// What of the host a session sees, read-only: the rules, by paths alone (runner/root/view/host_trees.hpp looks at the host).
#pragma once

#include "common/policy/policy.hpp"

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// Programs and their libraries: in every view. Links of a merged /usr are made again as links.
inline constexpr std::array<std::string_view, 9> program_trees = {"/usr",   "/opt",   "/bin",    "/sbin",     "/lib",
                                                                  "/lib32", "/lib64", "/libx32", "/nix/store"};

struct HostView {
    View view = View::minimal;
    // What is shown besides, at its own place: view_paths, and what the agent's program and certificates need. None below another.
    std::set<std::string> trees;
    std::map<std::string, std::string> links; // on the way to those, with their texts
};

// True when sessions see the host's `path` (canonical).
bool is_shown(const HostView &view, const std::string &path);

// The same without any of its trees.
bool is_shown_by(View view, std::string_view path);

// Whether the minimal view shows this directory or file of /etc.
bool is_shown_in_etc(std::string_view name);
// Its directories there, but for those that only beginnings of names say.
std::vector<std::string> shown_etc_directories();

// What to show of a place with a program in it, by its path alone: the directory that holds its bin, or its outermost node_modules; else
// the program's own directory. Never a directory at the top of the host.
std::string tree_of_program(const std::string &path);

// What a script names after `#!`; empty for any other file.
std::string interpreter_of(std::string_view first_bytes);

} // namespace pi_agent
