// Renderings for engines of this host: for podman a command and a quadlet, for systemd a unit, and for Slurm a job of our own runner's.
#include "admin/render/render.hpp"

#include "admin/render/render_text.hpp"
#include "common/base/error.hpp"
#include "common/base/problems.hpp"
#include "common/base/text.hpp"
#include "common/decide/decision.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/plan/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace pi_agent {

namespace {

constexpr std::uint64_t scratch_parts = 5; // of the host's memory, one for temporary files (runner/plan/limits.hpp: 20%)

std::string options_of(const RenderPlan &plan, const EngineMount &mount)
{
    std::string options = mount.read_only ? "ro" : "rw";
    options += ",bind,private,nosuid,nodev"; // bind: not what is mounted beneath
    if (!mount.of_project || plan.policy.projects.ownership == ProjectOwnership::none) return options;
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

// What both get, in the same words. A quadlet has the runtime from systemd.
std::vector<std::string> podman_options(const RenderPlan &plan, bool with_runtime)
{
    const auto &limits = plan.policy.limits;
    std::vector<std::string> options;
    for (const Gid group : plan.groups)
        options.push_back(fmt::format("--group-add={}", group.value()));
    // The policy's limit, or the default, of this host's memory.
    const std::uint64_t share = limits.memory_share ? limits.memory_share->amount : session_memory_percent;
    const std::uint64_t memory = limits.memory ? limits.memory->amount : plan.host_memory / 100 * share;
    options.push_back(fmt::format("--memory={}", memory));
    options.push_back(fmt::format("--pids-limit={}", limits.tasks ? limits.tasks->amount : session_tasks));
    if (limits.memory || limits.memory_share) options.push_back(fmt::format("--memory-swap={}", memory)); // none beyond it
    if (limits.cpu) options.push_back(fmt::format("--cpus={}.{:02}", limits.cpu->amount / 100, limits.cpu->amount % 100));
    if (limits.runtime && with_runtime) options.push_back(fmt::format("--timeout={}", limits.runtime->amount));
    for (const char *place : temporary_directories) {
        if (plan.policy.scratch == ScratchKind::tmpfs)
            options.push_back(fmt::format("--tmpfs={}:rw,nosuid,nodev,mode=1777,size={}", place, plan.host_memory / scratch_parts));
        else
            options.push_back(fmt::format("--mount=type=volume,destination={},U=true", place)); // gone with the container
    }
    return options;
}

std::vector<std::string> podman_notes(const RenderPlan &plan)
{
    return {fmt::format("For root's podman with crun and catatonit. The image has the agent at {}; {} is what", plan.policy.agent.binary,
                        seccomp_profile_path),
            "'pi-agentctl render --target seccomp' prints. The home is the agent's own: start pi once after a change of the policy.",
            "podman opens the project by its name: nobody but its user may be able to rename what lies above it."};
}

// The generator reads words, and writes them again into ExecStart=, with quotes where it sees a need.
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

// What ties a session's unit to its runner, and what only bus calls have.
constexpr std::string_view without_runner = "BindsTo Requires After CollectMode AddRef ExecStart StandardOutput StandardError KillSignal "
                                            "Description RefuseManualStop SuccessExitStatus RestartPreventExitStatus";

// An older systemd ignores a setting that it does not know. It ignores PrivateUsers=identity as well, and then has no user namespace.
constexpr SystemdFeatures every_feature{systemd_with_private_pids, true, true, false};

constexpr const char *rendered_directory = "/run/pi-agent-rendered";

// One for each rendering: its root of mount points, and the project as the agent sees it.
std::string place_of(const RenderPlan &plan)
{
    return rendered_directory + ("/" + plan.name);
}

std::string id_map_option(const RenderPlan &plan)
{
    if (plan.policy.projects.ownership == ProjectOwnership::none) return "";
    return ",X-mount.idmap=" + swapped_ids(plan.user.uid.value(), plan.agent.uid.value(), "u:{}:{}:{}", " ") + " " +
           swapped_ids(plan.user.gid.value(), plan.agent.gid.value(), "g:{}:{}:{}", " ");
}

SandboxPlan sandbox_of(const RenderPlan &plan)
{
    SandboxPlan sandbox{{}, plan.user.uid, plan.agent.uid, plan.agent.gid,      plan.groups,       {}, place_of(plan) + "/root",
                        {}, plan.home,     {plan.place},   plan.policy.network, plan.policy.limits};
    // A rendered unit has no launcher that looks what confines a debugger there: an older systemd ignores PrivatePIDs=.
    sandbox.tracing = plan.policy.tracing == Tracing::always ? Tracing::always : Tracing::never;
    sandbox.calls = plan.policy.calls;
    for (const auto &mount : mounts_of(plan)) {
        const std::string source = mount.of_project ? place_of(plan) + "/project" + mount.source.substr(plan.tree.size()) : mount.source;
        sandbox.binds.push_back({source, mount.target, mount.read_only});
    }
    return sandbox;
}

// Parts of the host, read-only, as the policy's view has them; systemd passes over what does not exist.
std::string view_lines(const RenderPlan &plan)
{
    std::string text;
    const auto add = [&](const std::string &path) { text += "BindReadOnlyPaths=-" + path + "\n"; };
    for (const auto tree : program_trees)
        add(std::string(tree));
    for (const auto tree : package_data)
        add(std::string(tree));
    const std::string own = tree_of_program(plan.policy.agent.binary);
    if (std::none_of(program_trees.begin(), program_trees.end(), [&](std::string_view tree) { return is_within(own, tree); })) add(own);
    if (plan.policy.view == View::host) {
        add("/etc");
        return text;
    }
    for (const auto &names : {shown_etc_directories(), shown_etc_files(), {"passwd", "group"}})
        for (const auto &name : names)
            add("/etc/" + name);
    return text;
}

std::string property_lines(const RenderPlan &plan)
{
    std::string text;
    for (const auto &property : service_properties(sandbox_of(plan), every_feature, Filters::of_the_unit)) {
        if (has_word(without_runner, property.name)) continue;
        text += unit_file_lines(property);
    }
    if (plan.policy.scratch == ScratchKind::tmpfs)
        for (const char *place : temporary_directories)
            text += fmt::format("TemporaryFileSystem={}:mode=1777,size=20%\n", place);
    return text;
}

// A unit by itself: systemd gives each command of the session a mount table of its own, made from what this unit mounts. The project is in
// a closed home, so the way to what shows it is closed, too, before it is shown. mkdir for directories that a project may be mounted on
// already.
std::string project_unit(const RenderPlan &plan, const std::string &place)
{
    return fmt::format("[Unit]\nDescription=project of a pi-agent session\nStopWhenUnneeded=yes\n\n"
                       "[Service]\nType=oneshot\nRemainAfterExit=yes\nUMask=0022\n"
                       "ExecStart=/usr/bin/install -d -m 0700 {3} {0}\nExecStart=/usr/bin/mkdir -p {0}/root {0}/project\n"
                       "ExecStart=/usr/bin/mount --bind -o {1} {2} {0}/project\nExecStop=/usr/bin/umount {0}/project\n",
                       place, exec_word("nosuid,nodev" + id_map_option(plan)), plan.tree, rendered_directory);
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
        has_own_network(plan.policy.network.mode) ? "--network=none" : "--network=host",
        "--ipc=private",
        "--ulimit=core=0:0",
        "--log-driver=none",
        "--http-proxy=false", // root's own variables are not for the agent
    };
    if (arguments.empty()) options.emplace_back("--tty"); // somebody is at the terminal; with arguments it is a part of something else
    for (const auto &option : podman_options(plan, true))
        options.push_back(option);
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

// Writes as one word what must be one word of ExecStart= in the end.
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
    text +=
        fmt::format("SeccompProfile={}\nNetwork={}\n", seccomp_profile_path, has_own_network(plan.policy.network.mode) ? "none" : "host");
    std::vector<std::string> options = {"--ipc=private", "--ulimit=core=0:0", "--http-proxy=false"};
    for (const auto &option : podman_options(plan, false))
        options.push_back(option);
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

std::string render_systemd(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    const std::string place = place_of(plan);
    std::string text = head_of(
        RenderTarget::systemd, plan,
        {"For systemd 252 or newer and util-linux 2.39 or newer, which maps ids. No part of pi-agent runs in it: the calls that only",
         "pi-agent-exec judges by their arguments, and Landlock, are not in it. The home is the agent's own: start pi once after a change",
         "of the policy. mount opens the project by its name: nobody but its user may be able to rename what lies above it.",
         fmt::format(
             "Two files, this one and, from the line with its name on, {0}-project.service: put both into /etc/systemd/system, then:",
             plan.name),
         fmt::format("systemctl daemon-reload; systemctl start {0}", plan.name)});
    const std::string project = plan.name + "-project.service";
    text += fmt::format("[Unit]\nDescription=pi-agent session\nBindsTo={0}\nAfter={0}\n\n[Service]\n", project);
    text += "ExecStart=@" + exec_word(plan.policy.agent.binary) + " " + exec_word(plan.policy.agent.binary_name);
    for (const auto &argument : arguments)
        text += " " + exec_word(argument);
    text += "\n";
    // In a local session, mounts of the runner make the kernel's switches read-only (runner/root/view/root_tree.hpp). This unit has no such
    // mounts.
    text += property_lines(plan) + "ProtectKernelTunables=yes\nMountAPIVFS=yes\n" + view_lines(plan);
    text += "WorkingDirectory=" + plan.directory + "\n";
    for (const auto &[name, value] : plan.variables)
        text += "Environment=" + unit_word(name + "=" + value) + "\n";
    for (const auto &file : plan.env_files)
        text += "EnvironmentFile=" + file.file.path + "\n";
    return text + "\n# /etc/systemd/system/" + project + "\n" + project_unit(plan, place);
}

std::string render_slurm(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    std::string text = head_of(
        RenderTarget::slurm, plan,
        {fmt::format("{} runs it. Each node has pi-agent, this policy and the project; what it grants is decided there.", plan.user.name)});
    text += "srun --pty";
    for (const auto &option : job_options(plan.policy, plan.name))
        text += " " + shell_word(option);
    text += " --chdir=" + shell_word(plan.started) + " " + shell_word(plan.policy.wrapper.command_name);
    for (const auto &argument : arguments)
        text += " " + shell_word(argument);
    return text + "\n";
}

} // namespace pi_agent
