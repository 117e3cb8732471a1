// Working the name out.
#include "runner/plan/tmpdir_place.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/base/path_text.hpp"

#include <algorithm>
#include <vector>

namespace pi_agent {

[[noreturn]] void refuse_tmpdir(const std::string &problem)
{
    throw Failure(ExitStatus::denied, "denied: --pi-agent-tmpdir: " + problem);
}

std::string place_of_tmpdir(const std::string &named, const std::string &shown_path, const std::string &below)
{
    const bool absolute = named[0] == '/';
    std::vector<std::string> components = path_components(absolute ? "" : shown_path + "/" + below);
    for (const auto &name : path_components(named)) {
        if (name != "..")
            components.push_back(name);
        else if (!components.empty())
            components.pop_back();
    }
    const std::vector<std::string> root = path_components(shown_path);
    if (components.size() <= root.size() || !std::equal(root.begin(), root.end(), components.begin()))
        refuse_tmpdir(escape_for_display(named) + " does not lie in " + escape_for_display(shown_path) +
                      ", which is all of the host's that this session can write; name a directory below it by its real path");
    std::string place;
    for (std::size_t index = root.size(); index < components.size(); ++index)
        place += (place.empty() ? "" : "/") + components[index];
    return place;
}

} // namespace pi_agent
