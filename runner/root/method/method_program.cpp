// Looking for the programs of a sandbox method.
#include "runner/root/method/method_program.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/host/trusted_file.hpp"

#include <fcntl.h>

namespace pi_agent {

std::vector<MethodProgram> programs_of(SandboxMethod method)
{
    switch (method) {
    case SandboxMethod::bwrap:
        return {{build::bwrap_path, "bubblewrap"}, {build::setpriv_path, "util-linux"}};
    case SandboxMethod::podman:
        return {{build::podman_path, "podman"}, {build::crun_path, "crun"}, {build::conmon_path, "conmon"}};
    case SandboxMethod::docker:
        return {{build::docker_path, "docker.io"}};
    case SandboxMethod::systemd:
    case SandboxMethod::none:
        break;
    }
    return {};
}

std::optional<std::string> problem_of_program(SandboxMethod method, const MethodProgram &program)
{
    try {
        open_trusted(program.path, O_PATH, "program");
        return std::nullopt;
    } catch (const SystemFailure &failure) {
        return std::string(to_string(method)) + " needs " + program.path + ", and " + failure.what() + "; install the package " +
               program.package + ", or choose another method";
    }
}

void require_method_programs(SandboxMethod method)
{
    for (const auto &program : programs_of(method))
        if (const auto problem = problem_of_program(method, program)) throw Failure(ExitStatus::unavailable, "sandbox.method " + *problem);
}

} // namespace pi_agent
