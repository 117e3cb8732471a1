// The command: finds out, plans, asks whether the engine can do all of it, and writes.
#include "admin/render/render.hpp"

#include "admin/text/terminal.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/problems.hpp"
#include "runner/root/door/admission.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

std::string default_image()
{
    return std::string("localhost/pi-agent:") + build::version;
}

namespace {

constexpr const char *seccomp = "seccomp";
constexpr std::array engines = {RenderTarget::kubernetes, RenderTarget::podman, RenderTarget::quadlet, RenderTarget::systemd,
                                RenderTarget::slurm};

RenderTarget engine_called(const std::string &name)
{
    const auto *found = std::find_if(engines.begin(), engines.end(), [&](RenderTarget target) { return name == to_string(target); });
    if (found != engines.end()) return *found;
    std::string names;
    for (const auto &target : render_targets())
        names += (names.empty() ? "" : ", ") + target;
    throw Failure(ExitStatus::usage, "--target: there is no target '" + name + "': one of " + names);
}

std::string rendered(RenderTarget target, const RenderPlan &plan, const RenderOptions &options)
{
    using Render = std::string (*)(const RenderPlan &plan, const std::vector<std::string> &arguments);
    static const std::map<RenderTarget, Render> renders = {{RenderTarget::podman, render_podman},
                                                           {RenderTarget::quadlet, render_quadlet},
                                                           {RenderTarget::systemd, render_systemd},
                                                           {RenderTarget::slurm, render_slurm}};
    if (target == RenderTarget::kubernetes) return render_kubernetes(plan, parse_workspace_volume(options.volume), options.arguments);
    return renders.at(target)(plan, options.arguments);
}

} // namespace

WorkspaceVolume parse_workspace_volume(const std::string &text)
{
    if (text.empty()) return {};
    const bool is_efs = text.rfind("efs:", 0) == 0;
    const std::string place = is_efs ? text.substr(4) : text;
    const std::size_t colon = place.find(':');
    const std::string server = place.substr(0, colon);
    const std::string path = colon == std::string::npos ? "" : place.substr(colon + 1);
    const bool is_whole = !server.empty() && !path.empty() && (is_efs ? path.rfind("fsap-", 0) == 0 : path[0] == '/');
    if (!is_whole) throw Failure(ExitStatus::usage, "--volume: '" + text + "' is neither SERVER:/EXPORT of NFS nor efs:fs-ID:fsap-ID");
    return {is_efs ? WorkspaceVolume::Kind::efs : WorkspaceVolume::Kind::nfs, server, path};
}

std::vector<std::string> render_targets()
{
    std::vector<std::string> names;
    for (const auto target : engines)
        names.emplace_back(to_string(target));
    names.emplace_back(seccomp);
    return names;
}

void run_render(const RenderOptions &options, std::ostream &out)
{
    if (options.target == seccomp) {
        out << render_seccomp();
        return;
    }
    const RenderTarget target = engine_called(options.target);
    if (!options.user || !options.directory)
        throw Failure(ExitStatus::usage,
                      std::string("a rendering for ") + to_string(target) + " is of one user in one directory: say --user and --cwd");
    const AsRoot root = claim_root("render", "reads files of variables that only root can read, and looks for others");
    const auto user = find_account(*options.user);
    if (!user) throw Failure(ExitStatus::usage, "there is no user " + quote(*options.user) + " on this host");
    const Policy policy = load_enabled_policy(*user);
    const AccessRules rules = authorise(policy, *user);
    RenderFacts facts = find_render_facts(root, policy, rules, *user, *options.directory);
    facts.image = options.image;
    const RenderPlan plan = plan_rendering(policy, rules, facts);
    require_honoured(target, plan);
    out << rendered(target, plan, options);
}

} // namespace pi_agent
