// pi-agent-podman: the first program of a session's unit under sandbox.method podman. systemd hands it the launcher's control socket,
// podman's arguments and a pipe for complaints as its three standard descriptors; podman wants the socket where it passes descriptors on.
// Becomes podman, with an environment that it inherits from nobody.
#include "common/base/build_settings.hpp"
#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/engine_commands.hpp"
#include "runner/root/method/engine_arguments.hpp"

#include <exception>
#include <sys/socket.h>

namespace {

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

void take_control_socket()
{
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET)
        throw Failure(FailureKind::by_hand, "pi-agent's runner starts this program; do not run it by hand");
    if (dup2(STDIN_FILENO, podman_control_fd) < 0) throw_errno("placing the control socket");
    keep_descriptors_to(podman_control_fd);
}

} // namespace

int main()
{
    try {
        const std::vector<std::string> arguments = read_engine_arguments(FdRef(STDOUT_FILENO));
        take_control_socket();
        fault_point("podman-door");
        // No endpoint, context or containers.conf of the host's or the caller's: the one file that is named is empty.
        // What podman reads of an image goes through files there, in the unit's own tmpfs; podman's own choice, /var/tmp, is read-only.
        std::vector<std::string> environment = {"PATH=/usr/sbin:/usr/bin", std::string("TMPDIR=") + podman_directory};
        if (defence_is_on("podman:no-settings")) environment.emplace_back("CONTAINERS_CONF=/dev/null");
        execve(build::podman_path, exec_pointers(arguments).data(), exec_pointers(environment).data());
        throw_errno(std::string("running ") + build::podman_path);
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "pi-agent-podman: %s\n", failure.what());
        const auto *known = dynamic_cast<const Failure *>(&failure);
        return static_cast<int>(known == nullptr ? ExitStatus::internal : known->status());
    }
}
