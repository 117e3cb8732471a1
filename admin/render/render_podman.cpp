// Renderings for podman: a command, and a quadlet.
#include "admin/render/render.hpp"

#include "admin/render/render_text.hpp"
#include "common/base/error.hpp"
#include "common/base/problems.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr std::uint64_t scratch_parts = 5; // of the host's memory, one for temporary files (runner/plan/limits.hpp: 20%)

std::string options_of(const RenderPlan &plan, const EngineMount &mount)
{
    std::string options = mount.read_only ? "ro" : "rw";
    options += ",bind,private,nosuid,nodev"; // bind: not what is mounted beneath
    if (!mount.of_project) return options;
    const auto ids = [](std::uint32_t user, std::uint32_t agent) { return swapped_ids(user, agent, "{}-{}-{}", "#"); };
    return options + ",idmap=uids=" + ids(plan.user.uid.value(), plan.agent.uid.value()) +
           ";gids=" + ids(plan.user.gid.value(), plan.agent.gid.value());
}

std::vector<std::string> podman_volumes(const RenderPlan &plan)
{
    std::vector<std::string> volumes;
    for (const auto &mount : mounts_of(plan))
        volumes.push_back(mount.source + ":" + mount.target + ":" + options_of(plan, mount));
    return volumes;
}

std::vector<std::string> podman_temporary_options(const RenderPlan &plan)
{
    std::vector<std::string> options;
    for (const char *place : temporary_directories) {
        if (plan.policy.scratch == ScratchKind::tmpfs)
            options.push_back(fmt::format("--tmpfs={}:rw,nosuid,nodev,mode=1777,size={}", place, plan.host_memory / scratch_parts));
        else
            options.push_back(fmt::format("--mount=type=volume,destination={},U=true", place)); // gone with the container
    }
    return options;
}

std::vector<std::string> podman_limits(const RenderPlan &plan)
{
    const auto &limits = plan.policy.limits;
    std::vector<std::string> options = {fmt::format("--memory={}", memory_of(plan)), fmt::format("--pids-limit={}", tasks_of(plan))};
    if (limits.memory || limits.memory_share) options.push_back(fmt::format("--memory-swap={}", memory_of(plan))); // none beyond it
    if (limits.cpu) options.push_back(fmt::format("--cpus={}.{:02}", limits.cpu->amount / 100, limits.cpu->amount % 100));
    return options;
}

std::vector<std::string> podman_notes(const RenderPlan &plan)
{
    return {fmt::format("For root's podman with crun and catatonit. The image has the agent at {}; {} is what", plan.policy.agent.binary,
                        seccomp_profile_path),
            "'pi-agentctl render --target seccomp' prints. The home is the agent's own: start pi once after a change of the policy.",
            "podman opens the project by its name: nobody but its user may be able to rename what lies above it."};
}

// The generator reads words, and writes them anew into ExecStart=, with quotes where it sees a need.
void require_kept_by_generator(const std::vector<std::string> &arguments)
{
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        const auto &argument = arguments[index];
        if (!argument.empty() && argument != ";") continue;
        throw Failure(ExitStatus::unavailable,
                      fmt::format("argument {} of the agent, {}: {}; leave it out, or take podman", index + 1, quote(argument),
                                  argument.empty() ? "podman's generator drops an empty word and all that follows it"
                                                   : "podman's generator writes it without quotes, and systemd ends the command there"));
    }
}

} // namespace

std::string render_podman(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    std::vector<std::string> options = {
        "--rm",
        "--interactive",
        "--init",
        "--name=" + plan.name,
        "--pull=never",
        fmt::format("--user={}:{}", plan.agent.uid.value(), plan.agent.gid.value()),
        "--read-only",
        "--read-only-tmpfs=false",
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        std::string("--security-opt=seccomp=") + seccomp_profile_path,
        plan.policy.network.mode == NetworkMode::none ? "--network=none" : "--network=host",
        "--ipc=private",
        "--ulimit=core=0:0",
        "--log-driver=none",
        "--http-proxy=false", // root's own variables are nothing to the agent
    };
    if (arguments.empty()) options.emplace_back("--tty"); // somebody sits before it; with arguments it is a part of something else
    for (const Gid group : plan.groups)
        options.push_back(fmt::format("--group-add={}", group.value()));
    const auto add = [&](const std::vector<std::string> &more) { options.insert(options.end(), more.begin(), more.end()); };
    add(podman_limits(plan));
    if (plan.policy.limits.runtime) options.push_back(fmt::format("--timeout={}", plan.policy.limits.runtime->amount));
    add(podman_temporary_options(plan));
    for (const auto &volume : podman_volumes(plan))
        options.push_back("--volume=" + volume);
    for (const auto &file : plan.env_files)
        options.push_back("--env-file=" + file.file.path);
    for (const auto &[name, value] : plan.variables)
        options.push_back("--env=" + name + "=" + value);
    options.push_back("--workdir=" + plan.directory);
    options.push_back("--entrypoint=" + plan.policy.agent.binary);
    std::string text = head_of(RenderTarget::podman, plan, podman_notes(plan)) + "podman run \\\n";
    for (const auto &option : options)
        text += "  " + shell_word(option) + " \\\n";
    text += "  " + shell_word(plan.image);
    for (const auto &argument : arguments)
        text += " " + shell_word(argument);
    return text + "\n";
}

// What is a word in ExecStart= in the end, is written as one.
std::string render_quadlet(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    require_kept_by_generator(arguments);
    auto notes = podman_notes(plan);
    notes.push_back(
        fmt::format("Put it at /etc/containers/systemd/{0}.container, then: systemctl daemon-reload; systemctl start {0}", plan.name));
    std::string text = head_of(RenderTarget::quadlet, plan, notes);
    text += fmt::format("[Unit]\nDescription=pi-agent session\n\n[Container]\nContainerName={}\nImage={}\nPull=never\n", plan.name,
                        unit_word(plan.image));
    text += fmt::format("User={}\nGroup={}\n", plan.agent.uid.value(), plan.agent.gid.value());
    text += "RunInit=true\nReadOnly=true\nReadOnlyTmpfs=false\nDropCapability=all\nNoNewPrivileges=true\n";
    text += fmt::format("SeccompProfile={}\nNetwork={}\n", seccomp_profile_path,
                        plan.policy.network.mode == NetworkMode::none ? "none" : "host");
    std::vector<std::string> options = {"--ipc=private", "--ulimit=core=0:0", "--http-proxy=false"};
    for (const Gid group : plan.groups)
        options.push_back(fmt::format("--group-add={}", group.value()));
    for (const auto &more : {podman_limits(plan), podman_temporary_options(plan)})
        options.insert(options.end(), more.begin(), more.end());
    options.push_back("--entrypoint=" + plan.policy.agent.binary);
    for (const auto &option : options)
        text += "PodmanArgs=" + exec_word(option) + "\n";
    for (const auto &volume : podman_volumes(plan))
        text += "Volume=" + volume + "\n"; // of harmless names alone (require_honoured)
    for (const auto &file : plan.env_files)
        text += "EnvironmentFile=" + exec_word(file.file.path) + "\n";
    for (const auto &[name, value] : plan.variables)
        text += "Environment=" + exec_word(name + "=" + value) + "\n";
    text += "WorkingDir=" + plan.directory + "\n";
    if (!arguments.empty()) {
        text += "Exec=";
        for (const auto &argument : arguments)
            text += (text.back() == '=' ? "" : " ") + exec_word(argument);
        text += "\n";
    }
    text += "\n[Service]\n";
    if (plan.policy.limits.runtime) text += fmt::format("RuntimeMaxSec={}\n", plan.policy.limits.runtime->amount);
    return text + "Restart=no\n";
}

} // namespace pi_agent
