// The programs that a method runs as root: whether they can hold a session here, and starting bwrap and its keeper.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/engine_commands.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

// --- The programs of the host that a sandbox method runs as root.

struct MethodProgram {
    const char *path;
    const char *package; // the package of Debian's that has it
};

std::vector<MethodProgram> programs_of(SandboxMethod method);

// Why the method cannot use this program, with the remedy; none when it exists. Throws Failure(configuration) when others than root can
// change it.
std::optional<std::string> problem_of_program(SandboxMethod method, const MethodProgram &program);

// Throws Failure(unavailable) for the first program that is missing.
void require_method_programs(SandboxMethod method);

// --- Starting bubblewrap as root, with an environment that takes nothing from the caller, and bound to this process.

// Borrowed.
struct BwrapDescriptors {
    FdRef launcher;  // the standard input of what runs inside
    FdRef complaint; // standard error
    FdRef info;      // where bwrap writes the number of its first process inside, as JSON
};

// `group`: the control group to start in, or none. Returns the process' number; it is killed when this process ends. Throws SystemFailure.
pid_t run_bwrap(const AsRoot &root, const SandboxPlan &plan, FdRef group, const BwrapDescriptors &descriptors);

// --- Starts a process that outlives the runner where no systemd does: it removes what a session left whose runner was killed.

// Starts pi-agent-cleanup --when-runner-ends. That program has another name than the runner, so that killing the runner by its name does
// not kill it. It waits while the returned descriptor is open. A byte written there dismisses it. When this process ends without one, it
// removes the session. Throws SystemFailure.
UniqueFd start_session_keeper(const AsRoot &root, const std::string &session_id);

// --- Whether sandbox.method bwrap can work here, asked at every launch before anything is mounted.

// Throws Failure(unavailable) with the reason and the remedy.
void require_bwrap(const AsRoot &root);
// The same for the policy's network.
void require_bwrap_network(const AsRoot &root, const NetworkPolicy &network);

// --- Whether sandbox.method docker can work here, asked at every launch before anything is mounted.

struct DockerHost {
    gid_t group = 0;   // besides root, may ask the daemon
    std::string image; // the id of the policy's image
};

// Throws Failure with the reason and the remedy.
DockerHost require_docker(const AsRoot &root, const SandboxPolicy &policy);

// The id in the daemon's description of an image. Throws Failure(unavailable) where the image brings more than files: the launcher, and the
// agent, would get its variables and volumes.
std::string require_plain_image(const nlohmann::json &description, const SandboxPolicy &policy);

// The text under a key of an engine's answer or list; empty without one.
std::string text_of(const nlohmann::json &object, const char *key);

// The image that the policy names cannot be used: throws Failure(unavailable) with the policy's place.
[[noreturn]] void refuse_image(const SandboxPolicy &policy, const std::string &reason);

// --- Whether sandbox.method podman can work here, asked at every launch before anything is mounted.

// The policy's image, if it names one. Throws Failure with the reason and the remedy: also where a program of podman's is missing.
std::optional<PodmanImage> require_podman(const AsRoot &root, const SandboxPolicy &policy);

// The id of the image that `name` means in podman's list of images (images.json of containers-storage); empty if it lacks that. A name
// without a registry means one of this host's own (localhost), or one of docker.io, in this order.
std::string find_podman_image(const nlohmann::json &list, const std::string &name);

// The layers of an image, the topmost first, by podman's lists of images and layers; none where a layer is missing.
std::vector<std::string> layers_of_image(const nlohmann::json &images, const nlohmann::json &layers, const std::string &id);

// `tree` without what a link at the top of the image leads to already. podman mounts in no order at the top, so at another link a part of
// the tree could cover another part: throws Failure(unavailable) where the image has one. `top`: the plan's root directory.
std::vector<Bind> lay_over_links(std::vector<Bind> tree, const std::string &top, const PodmanImage &image, const SandboxPolicy &policy);

} // namespace pi_agent
