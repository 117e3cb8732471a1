// Whether bwrap, podman or docker can hold a session on this host, tried before it is needed.
#include "runner/root/method/method_program.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/method/docker_daemon.hpp"
#include "runner/root/mount/mounts.hpp"

#include <array>
#include <cstdint>
#include <linux/capability.h>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

// Root needs them to build the view out of mounts, to make files that the agent owns, and to become its account without any.
constexpr std::array<std::pair<int, std::string_view>, 8> needed = {{{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
                                                                     {CAP_CHOWN, "CAP_CHOWN"},
                                                                     {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                                                                     {CAP_FOWNER, "CAP_FOWNER"},
                                                                     {CAP_KILL, "CAP_KILL"},
                                                                     {CAP_SETGID, "CAP_SETGID"},
                                                                     {CAP_SETUID, "CAP_SETUID"},
                                                                     {CAP_SETPCAP, "CAP_SETPCAP"}}};

std::uint32_t own_capabilities()
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
    if (syscall(SYS_capget, &header, data.data()) != 0) throw_errno("reading the own capabilities");
    return data[0].effective; // the capabilities in question are all among the first 32
}

bool has(std::uint32_t capabilities, int capability)
{
    return (capabilities & (1U << static_cast<unsigned>(capability))) != 0;
}

template <typename Names>
std::string joined(const Names &names)
{
    std::string text;
    for (const auto &name : names)
        text.append(text.empty() ? "" : ", ").append(name);
    return text;
}

void require_capabilities()
{
    std::vector<std::string_view> missing;
    const std::uint32_t own = own_capabilities();
    for (const auto &[capability, name] : needed)
        if (!has(own, capability)) missing.push_back(name);
    if (missing.empty()) return;
    throw Failure(FailureKind::sandbox_method,
                  "root of this container cannot mount or cannot become the agent's account (it lacks " + joined(missing) +
                      "), which sandbox.method bwrap needs; start the container with these capabilities, or choose another method");
}

void require_calls(const AsRoot &root)
{
    const std::vector<std::string> refused = refused_mount_calls(root);
    if (refused.empty()) return;
    throw Failure(FailureKind::sandbox_method, "a system-call filter around this container refuses " + joined(refused) +
                                                   ", which sandbox.method bwrap needs; start the container with a seccomp profile that "
                                                   "allows it (docs/platforms/methods.md, \"In a container\"), or choose another method");
}

constexpr int daemon_patience_seconds = 10;
constexpr std::size_t id_length = 64;

void require_cgroupfs(const nlohmann::json &facts)
{
    const std::string driver = text_of(facts, "CgroupDriver");
    if (driver == "cgroupfs") return;
    throw Failure(FailureKind::sandbox_method,
                  "docker's daemon has the control group driver " + escape_for_display(driver.empty() ? "none" : driver) +
                      ", which puts containers outside the session's unit and its limits; write {\"exec-opts\": "
                      "[\"native.cgroupdriver=cgroupfs\"]} to /etc/docker/daemon.json and restart docker, or choose another method");
}

} // namespace

std::string text_of(const nlohmann::json &object, const char *key)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

void refuse_image(const SandboxPolicy &policy, const std::string &reason)
{
    throw Failure(FailureKind::sandbox_method,
                  "the image " + policy.image + " of sandbox.image (" + to_string(policy.image_where) + ") " + reason);
}

void require_bwrap(const AsRoot &root)
{
    require_method_programs(SandboxMethod::bwrap);
    require_capabilities();
    require_calls(root);
}

void require_bwrap_network(const AsRoot & /*root*/, const NetworkPolicy &network)
{
    if (!has_own_network(network.mode) || has(own_capabilities(), CAP_NET_ADMIN)) return;
    throw Failure(FailureKind::sandbox_method,
                  "root of this container lacks CAP_NET_ADMIN, which sandbox.method bwrap needs for " + name_of(network) +
                      ", to give the session a loopback of its own; start the container with that capability, or " + way_without(network));
}

std::string require_plain_image(const nlohmann::json &description, const SandboxPolicy &policy)
{
    std::string id = text_of(description, "Id");
    constexpr const char *prefix = "sha256:";
    if (id.compare(0, 7, prefix) != 0 || id.size() != 7 + id_length || id.find_first_not_of("0123456789abcdef", 7) != std::string::npos)
        refuse_image(policy, "has no id, by the answer of docker's daemon");
    if (!defence_is_on("docker:plain-image")) return id;
    const nlohmann::json config = description.value("Config", nlohmann::json::object());
    const nlohmann::json variables = config.is_object() ? config.value("Env", nlohmann::json()) : nlohmann::json();
    for (const auto &variable : variables) {
        const std::string text = variable.is_string() ? variable.get<std::string>() : "";
        if (text.compare(0, 5, "PATH=") != 0)
            refuse_image(policy,
                         "sets the variable " + escape_for_display(text.substr(0, text.find('='))) +
                             ", which would reach the launcher too; use an image that sets no variables (docker import makes such)");
    }
    const nlohmann::json volumes = config.is_object() ? config.value("Volumes", nlohmann::json()) : nlohmann::json();
    if (!volumes.empty())
        refuse_image(
            policy, "declares volumes, which the agent would see beside its view; use an image without volumes (docker import makes such)");
    return id;
}

DockerHost require_docker(const AsRoot &root, const SandboxPolicy &policy)
{
    require_method_programs(SandboxMethod::docker);
    DockerHost host;
    host.group = require_docker_socket(root);
    const Deadline deadline = in_seconds(daemon_patience_seconds);
    require_cgroupfs(ask_docker(root, "/info", deadline).body);
    const DockerAnswer image = ask_docker(root, "/images/" + policy.image + "/json", deadline);
    if (image.status == 404)
        refuse_image(policy, "is not on this host, and a start pulls no image; the administrator runs: docker pull " + policy.image +
                                 " (or make it: docker import)");
    host.image = require_plain_image(image.body, policy);
    return host;
}

} // namespace pi_agent
