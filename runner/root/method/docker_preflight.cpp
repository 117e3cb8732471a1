// What docker needs of a host, and of an image.
#include "runner/root/method/docker_preflight.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/seams/defence.hpp"
#include "runner/root/method/docker_daemon.hpp"
#include "runner/root/method/method_program.hpp"

namespace pi_agent {

namespace {

constexpr int daemon_patience_seconds = 10;
constexpr std::size_t id_length = 64;

[[noreturn]] void refuse(const SandboxPolicy &policy, const std::string &reason)
{
    throw Failure(ExitStatus::unavailable,
                  "the image " + policy.image + " of sandbox.image (" + to_string(policy.image_where) + ") " + reason);
}

std::string text_of(const nlohmann::json &object, const char *key)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

void require_cgroupfs(const nlohmann::json &facts)
{
    const std::string driver = text_of(facts, "CgroupDriver");
    if (driver == "cgroupfs") return;
    throw Failure(ExitStatus::unavailable,
                  "docker's daemon has the cgroup driver " + escape_for_display(driver.empty() ? "none" : driver) +
                      ", with which a container is outside of the session's unit and its limits; write {\"exec-opts\": "
                      "[\"native.cgroupdriver=cgroupfs\"]} to /etc/docker/daemon.json and restart docker, or choose another method");
}

} // namespace

std::string require_plain_image(const nlohmann::json &description, const SandboxPolicy &policy)
{
    std::string id = text_of(description, "Id");
    constexpr const char *prefix = "sha256:";
    if (id.compare(0, 7, prefix) != 0 || id.size() != 7 + id_length || id.find_first_not_of("0123456789abcdef", 7) != std::string::npos)
        refuse(policy, "has no id that docker's daemon tells");
    if (!defence_is_on("docker:plain-image")) return id;
    const nlohmann::json config = description.value("Config", nlohmann::json::object());
    const nlohmann::json variables = config.is_object() ? config.value("Env", nlohmann::json()) : nlohmann::json();
    for (const auto &variable : variables) {
        const std::string text = variable.is_string() ? variable.get<std::string>() : "";
        if (text.compare(0, 5, "PATH=") != 0)
            refuse(policy, "sets the variable " + escape_for_display(text.substr(0, text.find('='))) +
                               ", which would be the launcher's too; take one that sets none (docker import makes such images)");
    }
    const nlohmann::json volumes = config.is_object() ? config.value("Volumes", nlohmann::json()) : nlohmann::json();
    if (!volumes.empty())
        refuse(policy, "declares volumes, which would be shown to the agent beside its view; take one that has none (docker import makes "
                       "such images)");
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
        refuse(policy, "is not on this host, and nothing is pulled at a start; get it: docker pull " + policy.image +
                           " (or make it: docker import)");
    host.image = require_plain_image(image.body, policy);
    return host;
}

} // namespace pi_agent
