// Running podman in a session's unit.
#include "runner/root/method/sandbox_podman.hpp"

#include "common/base/error.hpp"
#include "runner/plan/podman_command.hpp"
#include "runner/root/method/engine_arguments.hpp"
#include "runner/root/method/podman_preflight.hpp"
#include "runner/root/session/session_directory.hpp"

#include <cerrno>
#include <sys/stat.h>
#include <utility>

namespace pi_agent {

namespace {

// Where the unit mounts a tmpfs of its own. Left to systemd, it would be made for whoever is there first.
void make_place_for_podman()
{
    const UniqueFd runtime = open_runtime_directory();
    if (mkdirat(runtime.get(), "podman", 0700) != 0 && errno != EEXIST) throw_errno(std::string("creating ") + podman_directory);
}

} // namespace

PodmanSandbox::PodmanSandbox(const AsRoot &root, std::string session_id, Uid user)
    : ContainerSandbox(root, std::move(session_id), user, "podman")
{
    require_podman(root);
}

void PodmanSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    make_place_for_podman();
    expect_account(plan);
    const UniqueFd complaint = make_complaint();
    const UniqueFd arguments = write_arguments("the engine", podman_command(plan, host_name()));
    start_unit(plan, {launcher, arguments, complaint});
}

// podman 4.3 has no option for it. It is the host's name again.
std::vector<std::string> PodmanSandbox::own_files() const
{
    return {"hostname"};
}

std::vector<UnitProperty> PodmanSandbox::properties(const SandboxPlan &plan, const SystemdFeatures & /*features*/) const
{
    return podman_service_properties(plan);
}

} // namespace pi_agent
