// A unit file for podman's generator (podman-systemd.unit(5)): the same container as the command's, as a service.
#include "admin/render/render_podman.hpp"
#include "admin/render/render_text.hpp"
#include "common/base/error.hpp"
#include "common/base/problems.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

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
