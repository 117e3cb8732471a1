// A session's plan as docker's arguments (docker-run(1)). Pure, so that it can be tested and audited as a table.
#pragma once

#include "runner/plan/sandbox_plan.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// What the plan does not have.
struct DockerContainer {
    std::string image;         // by its id, "sha256:…": a name could mean another one by now
    std::string control_group; // of the session's unit, from the top of the hierarchies: "/pi.slice/….service"
    std::string host_name;     // as the kernel has it
    std::vector<Bind> tree;    // what of the plan's root directory is shown over the image's
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

} // namespace pi_agent
