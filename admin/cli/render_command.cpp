// The command line of render.
#include "admin/cli/commands.hpp"
#include "admin/render/render.hpp"

#include <iostream>

namespace pi_agent {

void add_render_command(CLI::App &app, Action &chosen)
{
    struct Given {
        RenderOptions options;
        std::string user;
        std::string directory;
    };
    const auto all = std::make_shared<Given>();
    all->options.image = default_image();
    std::string targets;
    for (const auto &name : render_targets())
        targets += (targets.empty() ? "" : ", ") + name;
    auto *render =
        app.add_subcommand("render", "Write what a start of pi would be given for an engine that exists: a container, a unit, a job");
    render->add_option("--target", all->options.target, "What to write: " + targets)->type_name("TARGET")->required();
    const auto *user = render->add_option("--user", all->user, "Whose access; all targets but seccomp want it")->type_name("NAME");
    const auto *directory =
        render->add_option("--cwd", all->directory, "Where pi would be started; all targets but seccomp want it")->type_name("DIRECTORY");
    render->add_option("--image", all->options.image, "The image of a container")->type_name("IMAGE")->capture_default_str();
    render->add_option("--volume", all->options.volume, "Where a cluster has the workspaces: SERVER:/EXPORT of NFS, or efs:fs-ID:fsap-ID")
        ->type_name("VOLUME");
    render->add_option("ARGUMENT", all->options.arguments, "Arguments of the agent, after --");
    on(render, chosen, [all, user, directory] {
        all->options.user = given(user, all->user);
        all->options.directory = given(directory, all->directory);
        run_render(all->options, std::cout);
    });
}

} // namespace pi_agent
