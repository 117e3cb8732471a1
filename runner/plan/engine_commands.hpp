// The command lines of the container engines, and bubblewrap's. Pure, so that they can be tested and audited as tables.
#pragma once

#include "runner/plan/sandbox_plan.hpp"

namespace pi_agent {

// The option for the container's host name. Throws Failure(unavailable) where an engine accepts no name with the host's characters.
std::string host_name_argument(const std::string &engine, const std::string &name);

// --- A session's plan as an engine's arguments (docker-run(1), podman-run(1)).

// The policy's image, whose root directory is below the view.
struct EngineImage {
    std::string id = {};        // a name could mean another one by now; empty without one, and podman's root directory is then the plan's
    std::string driver = "vfs"; // of podman's store that holds it: "overlay" or "vfs"
};

// What an engine needs besides the plan.
struct EngineContainer {
    std::string host_name; // as the kernel reports it
    EngineImage image = {};
    std::vector<Bind> tree = {};    // the parts of the plan's root directory that are shown over the image's
    std::string control_group = {}; // docker's: of the session's unit, from the top of the hierarchies: "/pi.slice/….service"
};

constexpr const char *docker_socket = "/run/docker.sock"; // of its daemon
constexpr const char *door_inside = "/run/pi-agent/door"; // where the launcher fetches its control socket
// Where docker looks for settings of its caller's: an empty directory that only the session's unit has.
constexpr const char *docker_directory = "/run/pi-agent/docker";
// Where podman keeps what it knows of its one container: a tmpfs that only the session's unit has (unit_properties.hpp).
constexpr const char *podman_directory = "/run/pi-agent/podman";
constexpr const char *podman_images = "/var/lib/containers/storage"; // of root's podman, where nothing says otherwise

// In the directory of a session that may have a container of docker's, and the container's name.
constexpr const char *docker_mark = "docker";
std::string container_name(const std::string &session_id);

// argv of the engine. Throws Failure(internal) where a path has a character that the engine would take for one of its own.
std::vector<std::string> docker_command(const SandboxPlan &plan, const EngineContainer &container);
std::vector<std::string> podman_command(const SandboxPlan &plan, const EngineContainer &container);

// --- A session's plan as bubblewrap's arguments (bwrap(1)).

// `info_fd`: where bwrap writes the number of its first process inside.
std::vector<std::string> bwrap_options(const SandboxPlan &plan, int info_fd);

// What bwrap runs: pi-agent-exec as the agent, by setpriv(1).
std::vector<std::string> bwrap_command(const SandboxPlan &plan);

} // namespace pi_agent
