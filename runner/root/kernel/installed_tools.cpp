// Which programs of the host's a session can use, and how the agent's own is started.
#include "runner/root/kernel/installed_tools.hpp"

#include <algorithm>
#include <filesystem>
#include <sys/stat.h>
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

bool can_be_run_by_all(const std::string &path)
{
    std::error_code problem;
    const std::filesystem::path real = std::filesystem::canonical(path, problem);
    struct stat facts {};
    if (problem || stat(real.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || (facts.st_mode & S_IXOTH) == 0) return false;
    for (auto directory = real.parent_path(); directory.has_relative_path(); directory = directory.parent_path())
        if (stat(directory.c_str(), &facts) == 0 && (facts.st_mode & S_IXOTH) == 0) return false;
    return true;
}

std::optional<std::string> open_program_notice(const Policy &policy)
{
    if (!policy.wrapper.hide_direct_binary || !can_be_run_by_all(policy.agent.binary)) return std::nullopt;
    return "everybody on this host can run " + policy.agent.binary +
           " without this wrapper: was it upgraded? the administrator hides it again with: sudo pi-agentctl apply";
}

} // namespace pi_agent
