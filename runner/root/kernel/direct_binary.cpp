// Modes of the agent's program, and of the directories on the way to it.
#include "runner/root/kernel/direct_binary.hpp"

#include <filesystem>
#include <sys/stat.h>

namespace pi_agent {

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
