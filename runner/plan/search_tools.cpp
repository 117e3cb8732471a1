// Looking for fd and rg where the agent looks for them.
#include "runner/plan/search_tools.hpp"

#include <algorithm>
#include <unistd.h>

namespace pi_agent {

namespace {

bool is_in_one(const std::vector<std::string> &directories, const std::string &name)
{
    return std::any_of(directories.begin(), directories.end(),
                       [&](const std::string &directory) { return access((directory + "/" + name).c_str(), X_OK) == 0; });
}

} // namespace

std::vector<std::string> missing_search_tools(const std::vector<std::string> &directories)
{
    std::vector<std::string> missing;
    if (!is_in_one(directories, "fd") && !is_in_one(directories, "fdfind")) missing.emplace_back("fd");
    if (!is_in_one(directories, "rg")) missing.emplace_back("rg");
    return missing;
}

std::vector<std::string> missing_search_tools()
{
    return missing_search_tools(system_path());
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
