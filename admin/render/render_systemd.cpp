// Renderings as a unit of systemd's, and as a job of Slurm's that uses it.
#include "admin/render/render.hpp"
#include "admin/render/render_mounts.hpp"
#include "admin/render/render_text.hpp"
#include "common/policy/policy_paths.hpp"
#include "runner/as_agent/places.hpp"
#include "runner/plan/host_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace pi_agent {

namespace {

using namespace std::string_view_literals;

// What ties a session's unit to its runner, and what only bus calls have.
constexpr std::array without_runner = {"BindsTo"sv,   "Requires"sv,       "After"sv,         "CollectMode"sv, "AddRef"sv,
                                       "ExecStart"sv, "StandardOutput"sv, "StandardError"sv, "KillSignal"sv,  "Description"sv};

// An older systemd passes over a setting that it does not know. It passes over PrivateUsers=identity as well, and has no user namespace
// then.
constexpr SystemdFeatures every_feature{systemd_with_private_pids, true, true, false};

constexpr const char *rendered_directory = "/run/pi-agent-rendered";

// One for each rendering: its root of mount points, and the project as the agent sees it.
std::string place_of(const RenderPlan &plan)
{
    return rendered_directory + ("/" + plan.name);
}

std::string id_map_option(const RenderPlan &plan)
{
    std::string text;
    const auto add = [&](char kind, const std::vector<IdRange> &ranges) {
        for (const auto &range : ranges)
            text += fmt::format("{}{}:{}:{}:{}", text.empty() ? "" : " ", kind, range.on_disk, range.inside, range.length);
    };
    add('u', user_ids(plan));
    add('g', group_ids(plan));
    return "X-mount.idmap=" + text;
}

SandboxPlan sandbox_of(const RenderPlan &plan)
{
    SandboxPlan sandbox{{}, plan.user.uid, plan.agent.uid, plan.agent.gid,      plan.groups,       {}, place_of(plan) + "/root",
                        {}, plan.home,     {plan.place},   plan.policy.network, plan.policy.limits};
    for (const auto &mount : mounts_of(plan)) {
        const std::string source = mount.of_project ? place_of(plan) + "/project" + mount.source.substr(plan.tree.size()) : mount.source;
        sandbox.binds.push_back({source, mount.target, mount.read_only});
    }
    return sandbox;
}

// Of the host, read-only, as the policy's view has it; what is not there is passed over.
std::string view_lines(const RenderPlan &plan)
{
    std::string text;
    const auto add = [&](const std::string &path) { text += "BindReadOnlyPaths=-" + path + "\n"; };
    for (const auto tree : program_trees)
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
    for (const auto &property : service_properties(sandbox_of(plan), every_feature)) {
        if (std::find(without_runner.begin(), without_runner.end(), property.name) != without_runner.end()) continue;
        text += unit_file_lines(property);
    }
    if (plan.policy.scratch == ScratchKind::tmpfs)
        for (const char *place : {"/tmp", "/var/tmp"})
            text += fmt::format("TemporaryFileSystem={}:mode=1777,size=20%\n", place);
    return text;
}

// A unit by itself: systemd gives each command of the session's a mount table of its own, made of what this one mounts. The project lies in
// a closed home, so the way to what shows it is closed, too, before it is shown. mkdir for what a project may be mounted on already.
std::string project_unit(const RenderPlan &plan, const std::string &place)
{
    return fmt::format("[Unit]\nDescription=project of a pi-agent session\nStopWhenUnneeded=yes\n\n"
                       "[Service]\nType=oneshot\nRemainAfterExit=yes\nUMask=0022\n"
                       "ExecStart=/usr/bin/install -d -m 0700 {3} {0}\nExecStart=/usr/bin/mkdir -p {0}/root {0}/project\n"
                       "ExecStart=/usr/bin/mount --bind -o {1} {2} {0}/project\nExecStop=/usr/bin/umount {0}/project\n",
                       place, exec_word("nosuid,nodev," + id_map_option(plan)), plan.tree, rendered_directory);
}

} // namespace

std::string render_systemd(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    const std::string place = place_of(plan);
    std::string text = head_of(
        RenderTarget::systemd, plan,
        {"For systemd 252 or newer and util-linux 2.39 or newer, which maps ids. Nothing of pi-agent runs in it: the calls that only",
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
    // Of a local session the kernel's switches are read-only by mounts of the runner (runner/root/view/root_tree.hpp), and here is none.
    text += property_lines(plan) + "ProtectKernelTunables=yes\nMountAPIVFS=yes\n" + view_lines(plan);
    text += "WorkingDirectory=" + plan.directory + "\n";
    for (const auto &[name, value] : plan.variables)
        text += "Environment=" + unit_word(name + "=" + value) + "\n";
    for (const auto &file : plan.env_files)
        text += "EnvironmentFile=" + file.file.path + "\n";
    return text + "\n# /etc/systemd/system/" + project + "\n" + project_unit(plan, place);
}

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
