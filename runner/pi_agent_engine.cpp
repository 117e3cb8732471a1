// pi-agent-engine: the first program of a session's unit under sandbox.method podman and docker. systemd hands it the engine's arguments as
// standard output, and a pipe for complaints as standard error. Becomes the engine, with an environment that it inherits from nobody.
#include "common/base/build_settings.hpp"
#include "common/base/files.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/root/method/engine_arguments.hpp"

#include <exception>
#include <linux/close_range.h>

namespace {

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

// Keeps standard error alone.
void close_descriptors()
{
    const UniqueFd null = UniqueFd::adopt(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0) throw_errno("opening /dev/null");
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) throw_errno("closing descriptors");
}

} // namespace

int main()
{
    try {
        const std::vector<std::string> arguments = read_engine_arguments(FdRef(STDOUT_FILENO));
        const bool is_podman = arguments.front() == "podman";
        close_descriptors();
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
