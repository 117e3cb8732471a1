// srun's options as the policy says them.
#include "common/decide/placement.hpp"

#include <fmt/format.h>

namespace pi_agent {

bool has_jobs(const Policy &policy) noexcept
{
    return policy.placement.engine == PlacementEngine::slurm;
}

std::string srun_of(const Policy &policy)
{
    return policy.placement.srun ? policy.placement.srun->text : default_srun;
}

std::vector<std::string> job_options(const Policy &policy, const std::string &name)
{
    const auto &limits = policy.limits;
    const auto &placement = policy.placement;
    constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
    std::vector<std::string> options = {"--nodes=1", "--ntasks=1", "--job-name=" + name};
    if (limits.memory) options.push_back(fmt::format("--mem={}M", (limits.memory->amount + mebibyte - 1) / mebibyte));
    if (limits.cpu) options.push_back(fmt::format("--cpus-per-task={}", (limits.cpu->amount + 99) / 100));
    if (limits.runtime) options.push_back(fmt::format("--time={}", (limits.runtime->amount + 59) / 60)); // minutes
    const auto add = [&](const char *option, const std::optional<PolicyWord> &word) {
        if (word) options.push_back(fmt::format("--{}={}", option, word->text));
    };
    add("partition", placement.partition);
    add("account", placement.account);
    add("qos", placement.qos);
    add("constraint", placement.constraint);
    return options;
}

std::vector<std::string> srun_arguments(const Policy &policy, const std::vector<std::string> &command)
{
    std::vector<std::string> arguments = job_options(policy, job_name);
    // The working directory's name is not srun's to carry; and of what srun says, its errors alone are for people here.
    arguments.insert(arguments.end(), {"--chdir=/", "--quiet"});
    arguments.insert(arguments.end(), command.begin(), command.end());
    return arguments;
}

} // namespace pi_agent
