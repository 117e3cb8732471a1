// srun(1): what the scheduler has to know, and the wrapper.
#include "admin/render/render_slurm.hpp"

#include "admin/render/render_text.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;

} // namespace

std::string render_slurm(const RenderPlan &plan, const std::string &command, const std::vector<std::string> &arguments)
{
    const auto &limits = plan.policy.limits;
    std::string text = head_of(
        RenderTarget::slurm, plan,
        {fmt::format("{} runs it. Each node has pi-agent, this policy and the project; what it grants is decided there.", plan.user.name)});
    text += "srun --pty --nodes=1 --ntasks=1 --job-name=" + plan.name + " --chdir=" + shell_word(plan.started);
    if (limits.memory) text += fmt::format(" --mem={}M", (limits.memory->amount + mebibyte - 1) / mebibyte);
    if (limits.cpu) text += fmt::format(" --cpus-per-task={}", (limits.cpu->amount + 99) / 100);
    if (limits.runtime) text += fmt::format(" --time={}", (limits.runtime->amount + 59) / 60); // minutes
    text += " " + shell_word(command);
    for (const auto &argument : arguments)
        text += " " + shell_word(argument);
    return text + "\n";
}

} // namespace pi_agent
