// What of the host a session sees, read-only: chosen from the policy, and put into the session's root tree by descriptor.
#pragma once

#include "common/host/identity.hpp"
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

// Opens trusted paths only. Throws Failure(configuration) for one that others than root can change, that is not there, or that leads where
// no session looks.
HostView plan_host_view(const Policy &policy);

// The same of one of view_paths alone.
void require_can_be_shown(const Policy &policy, const PolicyPath &path);

// True when sessions see the host's `path` (canonical).
bool is_shown(const HostView &view, const std::string &path);

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
