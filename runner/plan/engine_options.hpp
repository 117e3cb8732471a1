// The options of an engine's command `run`, as far as docker and podman take them alike.
#pragma once

#include "runner/plan/sandbox_plan.hpp"

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

namespace pi_agent {

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

} // namespace pi_agent
