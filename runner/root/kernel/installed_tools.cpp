// Looking for programs in PATH.
#include "runner/root/kernel/installed_tools.hpp"

#include "runner/plan/environment.hpp"

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

} // namespace pi_agent
