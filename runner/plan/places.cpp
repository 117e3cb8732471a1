// Directories that are chosen by name alone: for temporary files, and for the agent's search tools.
#include "runner/plan/host_view.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

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

std::string name_package(const std::string &missing)
{
    const std::string words =
        "this host has no " + missing + ", and the agent downloads it where the network allows that; install it (Debian: ";
    return words + (missing == "fd"
                        ? "fd-find, whose fdfind the agent finds; Debian 12's is too old for searches outside of git repositories)"
                        : "ripgrep)");
}

void keep_from_downloading(EnvironmentInput &environment, const NetworkPolicy &network, const std::vector<std::string> &missing)
{
    if (network.mode == NetworkMode::full || missing.empty()) return;
    environment.defaults["PI_OFFLINE"] = {"1", "pi-agent, because fd or rg is missing and the network is restricted"};
}

} // namespace pi_agent
