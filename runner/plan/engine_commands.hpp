// The command lines of the container engines.
#pragma once

#include "runner/plan/sandbox_plan.hpp"

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

namespace pi_agent {

// --- The options of an engine's command `run`, as far as docker and podman take them alike.

inline constexpr const char *shared_memory_bytes = "1073741824"; // it counts against the session's memory, too

// Places of the root that only a session's own mounts fill, as under bwrap.
inline constexpr std::array<const char *, 3> engine_homes{"/home", "/root", "/run/user"};

// The option for the container's host name. Throws Failure(unavailable) where the host's own is in no alphabet that an engine takes.
std::string host_name_argument(const std::string &engine, const std::string &name);

class EngineOptions {
public:
    // Of "docker" or "podman": its name begins those of its defences.
    explicit EngineOptions(std::string engine) : engine_(std::move(engine)) {}

    void add(std::initializer_list<std::string> more) { list_.insert(list_.end(), more); }
    // Under `other` where a test takes the defence out.
    void add_if(const char *defence, const std::string &option, const std::string &other = "");
    // The agent's ids and groups by their numbers.
    void add_account(const SandboxPlan &plan);
    // A mount that gets none of the host's later ones. Throws as safe() does.
    void add_bind(const std::string &source, const std::string &target, bool read_only);

    // Whether a test did not take the engine's defence of this name out.
    [[nodiscard]] bool is_on(const char *defence) const;
    // `path`, which in a list of options must have neither comma nor quote. Throws Failure(internal): preflight refuses such a path.
    [[nodiscard]] const std::string &safe(const std::string &path) const;

    [[nodiscard]] std::vector<std::string> take() { return std::move(list_); }

private:
    std::string engine_;
    std::vector<std::string> list_;
};

// --- A session's plan as docker's arguments (docker-run(1)). Pure, so that it can be tested and audited as a table.

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

// --- A session's plan as podman's arguments (podman-run(1)). Pure, so that it can be tested and audited as a table.

// Where podman keeps what it knows of its one container: a tmpfs that only the session's unit has (unit_properties.hpp).
constexpr const char *podman_directory = "/run/pi-agent/podman";
constexpr int podman_control_fd = 3; // where the launcher finds its control socket inside

// argv of podman. `host_name` is what the kernel has. Throws Failure(internal) where a path has a character that podman would take for one
// of its own.
std::vector<std::string> podman_command(const SandboxPlan &plan, const std::string &host_name);

} // namespace pi_agent
