// pi-agent-docker: the first program of a session's unit under sandbox.method docker. systemd hands it docker's arguments and a pipe for
// complaints as standard output and standard error. Becomes docker's client, with an environment that it inherits from nobody.
#include "common/base/build_settings.hpp"
#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/method/engine_arguments.hpp"

#include <exception>

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

int main()
{
    try {
        const std::vector<std::string> arguments = read_engine_arguments(FdRef(STDOUT_FILENO));
        keep_descriptors_to(STDERR_FILENO);
        fault_point("docker-door");
        // No endpoint, context or proxy of the host's or the caller's: the daemon and the directory of settings are arguments.
        const std::vector<std::string> environment = {"PATH=/usr/sbin:/usr/bin"};
        execve(build::docker_path, exec_pointers(arguments).data(), exec_pointers(environment).data());
        throw_errno(std::string("running ") + build::docker_path);
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "pi-agent-docker: %s\n", failure.what());
        const auto *known = dynamic_cast<const Failure *>(&failure);
        return static_cast<int>(known == nullptr ? ExitStatus::internal : known->status());
    }
}
