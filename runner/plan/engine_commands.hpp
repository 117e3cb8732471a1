// The command lines of the container engines, and bubblewrap's. Pure, so that they can be tested and audited as tables.
#pragma once

#include "runner/plan/sandbox_plan.hpp"

namespace pi_agent {

// The option for the container's host name. Throws Failure(unavailable) where an engine accepts no name with the host's characters.
std::string host_name_argument(const std::string &engine, const std::string &name);

// --- A session's plan as docker's arguments (docker-run(1)).

// What docker needs besides the plan.
struct DockerContainer {
    std::string image;         // by its id, "sha256:…": a name could mean another one by now
    std::string control_group; // of the session's unit, from the top of the hierarchies: "/pi.slice/….service"
    std::string host_name;     // as the kernel reports it
    std::vector<Bind> tree;    // the parts of the plan's root directory that are shown over the image's
};

constexpr const char *docker_socket = "/run/docker.sock"; // of its daemon
constexpr const char *door_inside = "/run/pi-agent/door"; // where the launcher fetches its control socket
// Where docker looks for settings of its caller's: an empty directory that only the session's unit has.
constexpr const char *docker_directory = "/run/pi-agent/docker";

// In the directory of a session that may have a container, and the container's name.
constexpr const char *docker_mark = "docker";
std::string container_name(const std::string &session_id);

// argv of docker. Throws Failure(internal) where a path has a character that docker would take for one of its own.
std::vector<std::string> docker_command(const SandboxPlan &plan, const DockerContainer &container);

// --- A session's plan as podman's arguments (podman-run(1)).

// Where podman keeps what it knows of its one container: a tmpfs that only the session's unit has (unit_properties.hpp).
constexpr const char *podman_directory = "/run/pi-agent/podman";
constexpr int podman_control_fd = 3; // where the launcher finds its control socket inside

// The image of root's whose root directory is below the view, where the policy names one.
struct PodmanImage {
    std::string id;     // 64 digits: a name could mean another one by now
    std::string driver; // of the store that holds it: "overlay" or "vfs"
    // The links at the top of the image, and where they lead: "lib", "usr/lib".
    std::map<std::string, std::string> links = {};
    std::vector<Bind> tree = {}; // the parts of the plan's root directory that are shown over the image's
};

constexpr const char *podman_images = "/var/lib/containers/storage"; // of root's podman, where nothing says otherwise

// argv of podman; throws as docker_command() does. `host_name` is as the kernel reports it. Without an image, the plan's root directory is
// the container's.
std::vector<std::string> podman_command(const SandboxPlan &plan, const std::string &host_name,
                                        const std::optional<PodmanImage> &image = std::nullopt);

// --- A session's plan as bubblewrap's arguments (bwrap(1)).

// `info_fd`: where bwrap writes the number of its first process inside.
std::vector<std::string> bwrap_options(const SandboxPlan &plan, int info_fd);

// What bwrap runs: pi-agent-exec as the agent, by setpriv(1).
std::vector<std::string> bwrap_command(const SandboxPlan &plan);

} // namespace pi_agent
