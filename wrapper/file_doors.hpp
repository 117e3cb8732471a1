// Files by whose names editors, shells and package managers take commands from a directory, and which part of each matters.
#pragma once

#include "wrapper/marker.hpp"

#include <string>
#include <string_view>

namespace pi_agent {

class FileDoors {
public:
    explicit FileDoors(Marker &marker) : marker_(marker) {}

    // An entry of a visited directory, of any type. Cheap where the name means nothing.
    void entry(const std::string &directory, std::string_view name);

private:
    void known(const std::string &path, std::string_view what, std::string_view words);
    void all_in(const std::string &directory, std::string_view what, std::string_view end);
    void package_scripts(const std::string &path);
    Marker &marker_;
};

// What npm would run of a package.json: as text for comparing, and whether some of it is run by a mere `npm install`. Empty text: nothing.
struct PackageScripts {
    std::string text;
    bool run_at_install = false;
};
PackageScripts read_package_scripts(std::string_view json);

} // namespace pi_agent
