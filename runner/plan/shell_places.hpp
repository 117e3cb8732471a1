// Places that the caller's shell names: its PATH, its editor, and git's variables, as one of git's hooks has them.
#pragma once

#include "runner/plan/host_view.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

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

} // namespace pi_agent
