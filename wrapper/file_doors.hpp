// Files from which editors, shells and package managers take commands by their name, and which part of each matters.
#pragma once

#include "wrapper/marker.hpp"

#include <string>
#include <string_view>

namespace pi_agent {

class FileDoors {
public:
    explicit FileDoors(Marker &marker) : marker_(marker) {}

    // An entry of a visited directory, of any type. Cheap for other names.
    void entry(const std::string &directory, std::string_view name);

private:
    void known(const std::string &path, std::string_view what, std::string_view words);
    void all_in(const std::string &directory, std::string_view what, std::string_view end);
    void package_scripts(const std::string &path);
    Marker &marker_;
};

// What npm would run from a package.json: text for comparison, and whether a plain `npm install` runs some of it. Empty text: nothing.
struct PackageScripts {
    std::string text;
    bool run_at_install = false;
};
PackageScripts read_package_scripts(std::string_view json);

} // namespace pi_agent
