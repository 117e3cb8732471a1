// Asks docker's daemon over its socket, as root and without running a program: a few questions of its API and removals, with bounds.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/engine_commands.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

// The group that may ask the daemon, which is root's power; 0 where only root may. Throws Failure(unavailable) where there is no socket,
// and Failure(configuration) where others than root and the group docker may write to it.
gid_t require_docker_socket(const AsRoot &root);

struct DockerAnswer {
    int status = 0; // of HTTP
    nlohmann::json body;
};

// `path` is in the alphabet of URLs. Throws Failure(unavailable) when the daemon gives no answer that can be read.
DockerAnswer ask_docker(const AsRoot &root, const std::string &path, Deadline deadline);

// Removes a container, whatever its state. best_effort: one that has ended is gone already, and the daemon may be gone.
void remove_container(const AsRoot &root, const std::string &name, Deadline deadline) noexcept;

// Names ("/pi-agent-…") of containers that exist and do not run. Throws Failure(unavailable), also where the daemon describes one in
// another way.
std::vector<std::string> ended_containers(const AsRoot &root, Deadline deadline);
std::vector<std::string> parse_ended_containers(const std::string &text);

// Removes none that runs by now: the daemon refuses that. One that is gone is fine. Throws Failure(unavailable).
void remove_ended_container(const AsRoot &root, const std::string &name, Deadline deadline);

// Parses an answer as the daemon sends it, a list or an object. Throws Failure(unavailable).
DockerAnswer parse_docker_answer(const std::string &text, bool is_list = false);

} // namespace pi_agent
