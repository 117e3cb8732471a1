// What of the caller's shell names places: its PATH, its editor, and git's own, as a hook of git's has them.
#pragma once

#include "runner/plan/host_view.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// The host's path of a tree that the session shows, and its path inside; any bytes.
using ShownAs = std::pair<std::string, std::string>;

// By paths alone: nothing is opened, because what is in a project or a home is not root's to follow. Inside, a link leads nowhere else.
struct PlacesInside {
    std::vector<ShownAs> work;       // the project first, then git directories that lie elsewhere
    std::vector<ShownAs> toolchains; // of the caller's home
    const HostView &view;
    std::string below;                                    // the working directory, beneath the project
    std::function<bool(const std::string &)> has_program; // whether the host's directories of PATH have one of this name
};

struct ShellPlaces {
    std::vector<std::string> presentation; // NAME=VALUE: all that names no place, and git's and the editor's where they are shown
    std::vector<std::string> path;         // of PATH, in its order, each by its path inside
    std::vector<std::string> notices;      // of what is left out
};

// Of `variables`, as the request has them (common/base/request.hpp). Git's come all together or not at all: an index of one repository and
// the directory of another would make a commit that nobody meant.
ShellPlaces judge_shell_places(const std::vector<std::string> &variables, const PlacesInside &places);

} // namespace pi_agent
