// What podman needs of a host.
#include "runner/root/method/podman_preflight.hpp"

#include "runner/root/method/method_program.hpp"

namespace pi_agent {

void require_podman(const AsRoot & /*root*/)
{
    require_method_programs(SandboxMethod::podman);
}

} // namespace pi_agent
