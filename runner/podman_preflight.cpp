// What podman needs of a host.
#include "runner/podman_preflight.hpp"

#include "common/build_settings.hpp"
#include "common/error.hpp"
#include "runner/method_program.hpp"

namespace pi_agent {

void require_podman(const AsRoot & /*root*/)
{
    require_method_program("podman", build::podman_path, "podman");
    require_method_program("podman", build::crun_path, "crun");
    require_method_program("podman", build::conmon_path, "conmon");
}

} // namespace pi_agent
