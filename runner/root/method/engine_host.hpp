// Whether root's podman or docker can hold a session here, asked at every launch before anything is mounted; and how the session's view
// lies over the root directory of an image.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/sandbox_plan.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

struct EngineHost {
    EngineImage image = {};
    // The links at the top of podman's image, and where they lead: "lib", "usr/lib".
    std::map<std::string, std::string> links = {};
    gid_t docker_group = 0; // besides root, may ask docker's daemon
};

// With the policy's image, if it names one. Throws Failure with the reason and the remedy: also where a program of the engine's is missing.
EngineHost require_engine(const AsRoot &root, const SandboxPolicy &policy);

// The id in the daemon's description of an image. Throws Failure(unavailable) where the image brings more than files: the launcher, and the
// agent, would get its variables and volumes.
std::string require_plain_image(const nlohmann::json &description, const SandboxPolicy &policy);

// The id of the image that `name` means in podman's list of images (images.json of containers-storage); empty if it lacks that. A name
// without a registry means one of this host's own (localhost), or one of docker.io, in this order.
std::string find_podman_image(const nlohmann::json &list, const std::string &name);

// The layers of an image, the topmost first, by podman's lists of images and layers; none where a layer is missing.
std::vector<std::string> layers_of_image(const nlohmann::json &images, const nlohmann::json &layers, const std::string &id);

// What is bound over an image's root directory: every directory at the top of the plan's tree, except those that the plan's binds or the
// engine fill; symlinks to programs as the directories that they lead to; and the plan's late files, which are made empty here. Makes the
// mount points for the plan's binds in the tree.
std::vector<Bind> show_tree(const SandboxPlan &plan);

// `tree` without what a link at the top of podman's image leads to already. podman mounts in no order at the top, so at another link a part
// of the tree could cover another part: throws Failure(unavailable) where the image has one. `top`: the plan's root directory.
std::vector<Bind> lay_over_links(std::vector<Bind> tree, const std::string &top, const EngineHost &host, const SandboxPolicy &policy);

// --- Asks docker's daemon over its socket, as root and without running a program: a few questions of its API and removals, with bounds.

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
