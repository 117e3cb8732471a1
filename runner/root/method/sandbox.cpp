// Picks the sandbox that the policy names, tries whether it can hold a session here, and checks what the kernel reports about it.
#include "runner/root/method/sandbox.hpp"

#include "common/host/namespaces.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/method/docker_daemon.hpp"
#include "runner/root/method/sandbox_methods.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"

#include <linux/capability.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

namespace pi_agent {

// Whether bwrap, podman or docker can hold a session on this host, tried before it is needed.

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

// Picks the sandbox that the policy names, and checks what the kernel reports about it against the policy.

namespace {

constexpr std::size_t overheard_limit = 4096;

const MethodTraits &traits_of(SandboxMethod method)
{
    static const std::map<SandboxMethod, MethodTraits> traits = {
        {SandboxMethod::systemd, {Restrictions::beside_unit, {"mnt", "ipc", "uts", "user"}, {}}},
        {SandboxMethod::bwrap, {Restrictions::all, {"mnt", "ipc", "uts", "pid"}, {}}},
        // podman 4.3 cannot leave /etc/hostname out. Its file has the host's name again.
        {SandboxMethod::podman, {Restrictions::all, {"mnt", "ipc", "uts", "pid"}, {"hostname"}}},
        {SandboxMethod::docker, {Restrictions::all, {"mnt", "ipc", "uts", "pid"}, {}}},
        {SandboxMethod::none, {Restrictions::none, {"mnt"}, {}}},
    };
    return traits.at(method);
}

} // namespace

UniqueFd Overheard::open()
{
    auto [ours, theirs] = make_pipe(O_NONBLOCK);
    pipe_ = std::move(ours);
    return std::move(theirs); // cppcheck-suppress returnStdMoveLocal ; it is a part of a pipe
}

const std::string &Overheard::text()
{
    std::array<char, 256> part{};
    ssize_t length = -1;
    while (pipe_ && (length = read(pipe_.get(), part.data(), part.size())) > 0)
        if (text_.size() < overheard_limit) text_.append(part.data(), static_cast<std::size_t>(length));
    if (length == 0) close();
    while (!text_.empty() && text_.back() == '\n')
        text_.pop_back();
    return text_;
}

Sandbox::Sandbox(const AsRoot &root, SandboxMethod method, std::string session_id, Uid user)
    : root_(root), method_(method), traits_(traits_of(method)), id_(std::move(session_id)), user_(user),
      events_(UniqueFd::adopt(epoll_create1(EPOLL_CLOEXEC)))
{
    if (!events_) throw_errno("watching the sandbox");
}

void Sandbox::watch(FdRef fd)
{
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) throw_errno("watching the sandbox");
}

void Sandbox::forget(FdRef fd)
{
    if (epoll_ctl(events_.get(), EPOLL_CTL_DEL, fd.get(), nullptr) != 0) throw_errno("watching the sandbox");
}

void Sandbox::require_enforced(const Policy &policy)
{
    require_confined();
    require_network(policy.network);
    require_limits(policy.limits);
}

UniqueFd Sandbox::network_namespace()
{
    throw Failure(ExitStatus::internal, std::string(to_string(method_)) + " has no network namespace to enter");
}

void Sandbox::start_gate(const GateRoot & /*root*/, FdRef /*channel*/, FdRef /*says*/)
{
    throw Failure(FailureKind::network_not_enforced, std::string("sandbox.method ") + to_string(method_) +
                                                         " starts no gate, which the policy's hosts need; use the method systemd, or "
                                                         "another network");
}

void Sandbox::kill_gate()
{
    throw Failure(ExitStatus::internal, std::string(to_string(method_)) + " has no gate to end");
}

void Sandbox::require_own_namespaces(const std::vector<pid_t> &inside, std::initializer_list<const char *> kinds) const
{
    for (const char *kind : kinds) {
        const auto host = namespace_of("1", kind);
        if (!host) throw_errno("reading the host's namespaces");
        bool has_own = !inside.empty();
        for (const pid_t pid : inside)
            has_own = has_own && namespace_of(std::to_string(pid), kind).value_or(*host) != *host;
        if (!has_own)
            throw Failure(FailureKind::sandbox_method,
                          std::string(to_string(method_)) + " made no namespace of its own for the session (" + kind + ")");
    }
}

void Sandbox::require_network(const NetworkPolicy &network)
{
    if (has_own_network(network.mode))
        require_own_network(processes(), network);
    else if (network.mode != NetworkMode::full && has_unit(method_))
        require_packet_filters(root_, *group(), network);
}

void Sandbox::require_limits(const LimitsPolicy &limits)
{
    const auto said = first_for_group(limits);
    if (!said || !defence_is_on("limits-check")) return;
    const auto own = group();
    if (!own)
        throw Failure(FailureKind::limits_not_enforced, "this host cannot enforce the policy's " + to_string(*said) + ": " +
                                                            control_groups +
                                                            " is not a hierarchy of version 2 that root can write, where sandbox.method "
                                                            "bwrap makes the session's control group; or remove the key from the policy");
    require_limits_in(*own, limits,
                      has_unit(method_) ? "is it kept from its slice (DisableControllers=)?"
                                        : "is it handed to this container, and is the container's first group without processes of its own "
                                          "(cgroups(7))?");
}

// Empty where the method has no control group of its own.
UnitUsage Sandbox::usage()
{
    return if_it_can_be_read([&] {
        const auto own = group();
        return own ? usage_of(*own) : UnitUsage{};
    });
}

LimitEvents Sandbox::limit_events()
{
    return if_it_can_be_read([&] {
        const auto own = group();
        return own ? read_limit_events(*own) : LimitEvents{};
    });
}

bool Sandbox::has_limits() const
{
    if (has_unit(method_)) return true;
    const auto own = group();
    return own && access((own->path + "/pids.max").c_str(), F_OK) == 0;
}

std::string Sandbox::where_to_look() const
{
    return has_unit(method_) ? "; the administrator finds more with: journalctl -u " + service_name(id_) : "";
}

std::vector<std::string> Sandbox::own_namespaces(const NetworkPolicy &network) const
{
    std::vector<std::string> kinds = traits_.namespaces;
    if (has_own_network(network.mode)) kinds.emplace_back("net");
    return kinds;
}

std::unique_ptr<Sandbox> make_sandbox(const AsRoot &root, const SandboxPolicy &policy, const std::string &session_id, Uid user)
{
    switch (policy.method) {
    case SandboxMethod::systemd:
    case SandboxMethod::none:
        return std::make_unique<SystemdSandbox>(root, policy.method, session_id, user);
    case SandboxMethod::bwrap:
        return std::make_unique<BwrapSandbox>(root, session_id, user);
    case SandboxMethod::podman:
        return std::make_unique<PodmanSandbox>(root, session_id, user, policy);
    case SandboxMethod::docker:
        return std::make_unique<DockerSandbox>(root, session_id, user, policy);
    }
    throw Failure(ExitStatus::internal, "a sandbox method without a sandbox");
}

std::string unconfined_notice(const SandboxPolicy &policy, const Account &agent)
{
    return "NOT SANDBOXED: the policy says sandbox.method: none (" + to_string(policy.where) + "). The agent runs as " + agent.name +
           ", and nothing but the rights of that account keeps it from this host's processes, devices and services";
}

} // namespace pi_agent
