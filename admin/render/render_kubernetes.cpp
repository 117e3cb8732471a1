// The objects around the Job: namespace, quota, volume, settings, network; and all of them as one text.
#include "admin/render/render.hpp"

#include "admin/render/render_text.hpp"
#include "common/base/error.hpp"
#include "runner/plan/limits.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

using Json = nlohmann::ordered_json;

Json object(const char *version, const char *kind, const Json &metadata)
{
    return {{"apiVersion", version}, {"kind", kind}, {"metadata", metadata}};
}

Json in_namespace(const RenderPlan &plan, const std::string &name)
{
    return {{"name", name}, {"namespace", namespace_of(plan)}};
}

// Nothing in it but Jobs of one user, and no pod that is less confined than these.
Json make_namespace(const RenderPlan &plan)
{
    Json labels = Json::object();
    for (const char *mode : {"enforce", "audit", "warn"})
        labels[std::string("pod-security.kubernetes.io/") + mode] = "restricted";
    return object("v1", "Namespace", {{"name", namespace_of(plan)}, {"labels", labels}});
}

Json make_quota(const RenderPlan &plan)
{
    const auto &limits = plan.policy.limits;
    const std::uint64_t sessions = limits.sessions ? limits.sessions->amount : session_limit;
    Json hard = {{"pods", std::to_string(sessions)}}; // those that have ended do not count
    if (limits.memory) hard["limits.memory"] = std::to_string(sessions * limits.memory->amount);
    if (limits.cpu) hard["limits.cpu"] = fmt::format("{}m", sessions * limits.cpu->amount * 10);
    Json quota = object("v1", "ResourceQuota", in_namespace(plan, "pi-agent-sessions"));
    quota["spec"] = {{"hard", hard}};
    return quota;
}

constexpr const char *workspace_size = "10Gi"; // network file systems take no notice of it; the field must be there

Json make_volume(const RenderPlan &plan, const WorkspaceVolume &volume)
{
    Json spec = {
        {"capacity", {{"storage", workspace_size}}},        {"accessModes", Json::array({"ReadWriteMany"})},
        {"persistentVolumeReclaimPolicy", "Retain"},        {"storageClassName", ""},
        {"mountOptions", Json::array({"nosuid", "nodev"})}, {"claimRef", {{"namespace", namespace_of(plan)}, {"name", plan.name}}}};
    if (volume.kind == WorkspaceVolume::Kind::nfs) {
        spec["nfs"] = {{"server", volume.server}, {"path", volume.path + "/" + plan.name}};
    } else {
        spec["mountOptions"] = Json::array({"tls", "nosuid", "nodev"});
        spec["csi"] = {{"driver", "efs.csi.aws.com"}, {"volumeHandle", volume.server + "::" + volume.path}};
    }
    Json made = object("v1", "PersistentVolume", {{"name", plan.name}});
    made["spec"] = spec;
    return made;
}

Json make_claim(const RenderPlan &plan, const WorkspaceVolume &volume)
{
    Json claim = object("v1", "PersistentVolumeClaim", in_namespace(plan, plan.name));
    claim["spec"] = {{"accessModes", Json::array({"ReadWriteMany"})},
                     {"storageClassName", volume.kind == WorkspaceVolume::Kind::storage_class ? "pi-agent-workspaces" : ""},
                     {"resources", {{"requests", {{"storage", workspace_size}}}}}};
    if (volume.kind != WorkspaceVolume::Kind::storage_class) claim["spec"]["volumeName"] = plan.name;
    return claim;
}

Json make_settings(const RenderPlan &plan)
{
    Json settings = object("v1", "ConfigMap", in_namespace(plan, plan.name + settings_suffix));
    for (const auto &[file, text] : documents_of(plan))
        settings["data"][file] = text;
    return settings;
}

// Both directions, as on a host. A pod's own loopback is always its own.
Json make_network(const RenderPlan &plan)
{
    Json peers = Json::array();
    if (plan.policy.network.mode == NetworkMode::listed)
        for (const auto &range : plan.policy.network.allowed)
            peers.push_back({{"ipBlock", {{"cidr", to_string(range)}}}});
    Json network = object("networking.k8s.io/v1", "NetworkPolicy", in_namespace(plan, plan.name));
    network["spec"] = {{"podSelector", {{"matchLabels", labels_of(plan)}}}, {"policyTypes", Json::array({"Ingress", "Egress"})}};
    if (!peers.empty()) {
        network["spec"]["ingress"] = Json::array({{{"from", peers}}});
        network["spec"]["egress"] = Json::array({{{"to", peers}}});
    }
    return network;
}

std::vector<std::string> notes(const RenderPlan &plan, const WorkspaceVolume &volume)
{
    std::vector<std::string> lines = {
        fmt::format("The image has the agent at {}. Each node has the profile of 'pi-agentctl render --target seccomp' at",
                    plan.policy.agent.binary),
        fmt::format("/var/lib/kubelet/seccomp/{}. The workspace belongs to {}:{} and holds the directories project and home.",
                    seccomp_on_node, plan.user.uid.value(), plan.user.gid.value())};
    lines.push_back(fmt::format("Of {} it has nothing: what the agent finds are the documents of the policy, and what is in the workspace.",
                                plan.rules.config_directory));
    if (volume.kind == WorkspaceVolume::Kind::efs)
        lines.push_back(
            fmt::format("The access point is this workspace's alone: root directory /workspaces/{}, user {}:{}; the file system has "
                        "elastic throughput and general-purpose performance.",
                        plan.name, plan.user.uid.value(), plan.user.gid.value()));
    for (std::size_t index = 0; index < plan.env_files.size(); ++index)
        lines.push_back(fmt::format("Secret {} holds the variables of {}.", secret_name(plan, index), plan.env_files[index].file.path));
    return lines;
}

} // namespace

WorkspaceVolume parse_workspace_volume(const std::string &text)
{
    if (text.empty()) return {};
    const bool is_efs = text.rfind("efs:", 0) == 0;
    const std::string place = is_efs ? text.substr(4) : text;
    const std::size_t colon = place.find(':');
    const std::string server = place.substr(0, colon);
    const std::string path = colon == std::string::npos ? "" : place.substr(colon + 1);
    const bool is_whole = !server.empty() && !path.empty() && (is_efs ? path.rfind("fsap-", 0) == 0 : path[0] == '/');
    if (!is_whole) throw Failure(ExitStatus::usage, "--volume: '" + text + "' is neither SERVER:/EXPORT of NFS nor efs:fs-ID:fsap-ID");
    return {is_efs ? WorkspaceVolume::Kind::efs : WorkspaceVolume::Kind::nfs, server, path};
}

std::vector<Json> kubernetes_objects(const RenderPlan &plan, const WorkspaceVolume &volume, const std::vector<std::string> &arguments)
{
    std::vector<Json> objects = {make_namespace(plan), make_quota(plan)};
    if (volume.kind != WorkspaceVolume::Kind::storage_class) objects.push_back(make_volume(plan, volume));
    objects.push_back(make_claim(plan, volume));
    if (!documents_of(plan).empty()) objects.push_back(make_settings(plan));
    if (plan.policy.network.mode != NetworkMode::full) objects.push_back(make_network(plan));
    objects.push_back(make_job(plan, arguments));
    return objects;
}

std::string render_kubernetes(const RenderPlan &plan, const WorkspaceVolume &volume, const std::vector<std::string> &arguments)
{
    std::string text = head_of(RenderTarget::kubernetes, plan, notes(plan, volume));
    for (const auto &one : kubernetes_objects(plan, volume, arguments))
        text += "---\n" + to_yaml(one);
    return text;
}

} // namespace pi_agent
