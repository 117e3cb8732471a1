// pi-agent-engine: the first program of a session's unit under sandbox.method podman and docker. systemd hands it the engine's arguments as
// standard output, and a pipe for complaints as standard error. podman passes descriptors on: for it, standard input is the launcher's
// control socket. Becomes the engine, with an environment that it inherits from nobody.
#include "common/base/build_settings.hpp"
#include "common/base/process.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/engine_commands.hpp"
#include "runner/root/method/engine_arguments.hpp"

#include <exception>
#include <linux/close_range.h>
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
}

// Standard input and output become /dev/null, and every descriptor above `last` is closed.
void keep_descriptors_to(int last)
{
    const UniqueFd null = UniqueFd::adopt(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0) throw_errno("opening /dev/null");
    if (close_range(static_cast<unsigned>(last) + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) throw_errno("closing descriptors");
}

} // namespace

int main()
{
    try {
        const std::vector<std::string> arguments = read_engine_arguments(FdRef(STDOUT_FILENO));
        const bool is_podman = arguments.front() == "podman";
        if (is_podman) take_control_socket();
        keep_descriptors_to(is_podman ? podman_control_fd : STDERR_FILENO);
        fault_point("engine-door");
        // No endpoint, context, proxy or containers.conf of the host's or the caller's: docker's daemon and directory of settings are
        // arguments, and the one file that podman is told of is empty. What podman reads of an image goes through files in the unit's own
        // tmpfs; podman's own choice, /var/tmp, is read-only.
        std::vector<std::string> environment = {"PATH=/usr/sbin:/usr/bin"};
        if (is_podman) environment.push_back(std::string("TMPDIR=") + podman_directory);
        if (is_podman && defence_is_on("podman:no-settings")) environment.emplace_back("CONTAINERS_CONF=/dev/null");
        const char *const program = is_podman ? build::podman_path : build::docker_path;
        execve(program, exec_pointers(arguments).data(), exec_pointers(environment).data());
        throw_errno(std::string("running ") + program);
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "pi-agent-engine: %s\n", failure.what());
        const auto *known = dynamic_cast<const Failure *>(&failure);
        return static_cast<int>(known == nullptr ? ExitStatus::internal : known->status());
    }
}
