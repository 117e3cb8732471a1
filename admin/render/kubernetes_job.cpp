// One pod, run once, as the user who owns the workspace: there is no host whose accounts it could meet.
#include "admin/render/render.hpp"

#include "common/host/beneath.hpp"
#include "common/policy/policy_paths.hpp"
#include "runner/as_agent/places.hpp"
#include "runner/as_agent/writer.hpp"
#include "runner/wire/sync_messages.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

using Json = nlohmann::ordered_json;

constexpr unsigned kept_seconds = 3600;          // of a Job that has ended, to read its log
constexpr const char *scratch_on_disk = "20Gi";  // of a node
constexpr const char *scratch_in_memory = "2Gi"; // counts against the container's memory, too

Json mount_of(const std::string &volume, const std::string &place, const std::string &below, bool read_only)
{
    Json mount = {{"name", volume}, {"mountPath", place}};
    if (!below.empty()) mount["subPath"] = below;
    if (read_only) mount["readOnly"] = true;
    return mount;
}

Json mounts_of_pod(const RenderPlan &plan)
{
    Json mounts = Json::array();
    mounts.push_back(mount_of("workspace", plan.home, "home", false));
    // What lies above the documents, so that it cannot be renamed; in every Job, so that no other Job leaves a link there.
    for (const auto &directory : {split_last(agent_directory).first, std::string(agent_directory)})
        mounts.push_back(mount_of("workspace", join_path(plan.home, directory), join_path("home", directory), false));
    for (const auto &document : documents_of(plan))
        mounts.push_back(mount_of("settings", plan.home + "/" + agent_directory + "/" + document.first, document.first, true));
    mounts.push_back(mount_of("workspace", plan.place, "project", false));
    for (const auto &[path, kind] : plan.points)
        mounts.push_back(mount_of("workspace", join_path(plan.place, path), join_path("project", path), kind == PointKind::read_only));
    mounts.push_back(mount_of("tmp", "/tmp", "", false));
    mounts.push_back(mount_of("var-tmp", "/var/tmp", "", false));
    return mounts;
}

Json volumes_of(const RenderPlan &plan)
{
    Json volumes = Json::array({Json{{"name", "workspace"}, {"persistentVolumeClaim", {{"claimName", plan.name}}}}});
    if (!documents_of(plan).empty()) volumes.push_back({{"name", "settings"}, {"configMap", {{"name", plan.name + settings_suffix}}}});
    for (const char *name : {"tmp", "var-tmp"}) {
        if (plan.policy.scratch == ScratchKind::tmpfs)
            volumes.push_back({{"name", name}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", scratch_in_memory}}}});
        else
            volumes.push_back({{"name", name}, {"emptyDir", {{"sizeLimit", scratch_on_disk}}}});
    }
    return volumes;
}

// A quota wants them of each container.
void add_resources(const RenderPlan &plan, Json &container)
{
    const auto &limits = plan.policy.limits;
    Json most = Json::object();
    if (limits.memory) most["memory"] = std::to_string(limits.memory->amount);
    if (limits.cpu) most["cpu"] = fmt::format("{}m", limits.cpu->amount * 10);
    if (!most.empty()) container["resources"] = {{"limits", most}, {"requests", most}};
}

Json confinement()
{
    return {{"allowPrivilegeEscalation", false},
            {"privileged", false},
            {"capabilities", {{"drop", Json::array({"ALL"})}}},
            {"readOnlyRootFilesystem", true}};
}

// What is mounted from the workspace has to be there, and to be the agent's: the kubelet would make it as root.
Json make_preparation(const RenderPlan &plan)
{
    Json container = {
        {"name", "directories"},
        {"image", plan.image},
        {"imagePullPolicy", "IfNotPresent"},
        {"command", Json::array({"/bin/mkdir", "-p", "/workspace/project", std::string("/workspace/home/") + agent_directory})},
        {"workingDir", "/"},
        {"securityContext", confinement()},
        {"volumeMounts", Json::array({mount_of("workspace", "/workspace", "", false)})}};
    add_resources(plan, container);
    return container;
}

// Kubernetes puts variables into what it starts: $(NAME) is one's value, and $$ a dollar sign.
std::string as_it_stands(const std::string &text)
{
    std::string quoted;
    for (const char byte : text)
        quoted.append(byte == '$' ? 2 : 1, byte);
    return quoted;
}

Json make_container(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    Json env = Json::array();
    for (const auto &[name, value] : plan.variables)
        env.push_back({{"name", name}, {"value", as_it_stands(value)}});
    Json words = Json::array();
    for (const auto &argument : arguments)
        words.push_back(as_it_stands(argument));
    Json container = {{"name", "agent"},
                      {"image", plan.image},
                      {"imagePullPolicy", "IfNotPresent"},
                      {"command", Json::array({plan.policy.agent.binary})},
                      {"args", words},
                      {"workingDir", plan.directory},
                      {"env", env}};
    if (arguments.empty()) {
        container.erase("args");
        container["stdin"] = true; // for kubectl attach
        container["tty"] = true;
    }
    for (std::size_t index = 0; index < plan.env_files.size(); ++index)
        container["envFrom"].push_back({{"secretRef", {{"name", secret_name(plan, index)}}}});
    add_resources(plan, container);
    container["securityContext"] = confinement();
    container["volumeMounts"] = mounts_of_pod(plan);
    return container;
}

} // namespace

std::map<std::string, std::string> documents_of(const RenderPlan &plan)
{
    auto documents = plan.policy.documents;
    if (plan.policy.settings_lock) documents.emplace("settings.json", "{}"); // a lock needs something to mount
    return documents;
}

std::string namespace_of(const RenderPlan &plan)
{
    constexpr std::size_t stem_limit = 63 - 9; // a DNS label, less the hash
    std::string name = plan.user.name;
    for (char &byte : name)
        if (const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9'); !is_plain) byte = '-';
    std::string label = "pi-agent-" + name;
    if (name == plan.user.name && name.back() != '-' && label.size() <= stem_limit) return label;
    // Of two users whose names differ in what is no letter of a label, each has its own.
    const std::string alias = alias_of("/" + plan.user.name);
    return label.substr(0, stem_limit) + alias.substr(alias.rfind('-'));
}

Json labels_of(const RenderPlan &plan)
{
    return {{"app.kubernetes.io/name", "pi-agent"}, {"app.kubernetes.io/instance", plan.name}};
}

std::string secret_name(const RenderPlan &plan, std::size_t index)
{
    return fmt::format("{}-env-{}", plan.name, index + 1);
}

Json make_job(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    Json groups = Json::array();
    for (const Gid group : plan.groups)
        groups.push_back(group.value());
    Json context = {{"runAsNonRoot", true},
                    {"runAsUser", plan.user.uid.value()},
                    {"runAsGroup", plan.user.gid.value()},
                    {"fsGroup", plan.user.gid.value()},
                    {"fsGroupChangePolicy", "OnRootMismatch"},
                    {"supplementalGroups", groups},
                    {"seccompProfile", {{"type", "Localhost"}, {"localhostProfile", seccomp_on_node}}}};
    if (groups.empty()) context.erase("supplementalGroups");
    const Json pod = {{"restartPolicy", "Never"},
                      {"automountServiceAccountToken", false},
                      {"enableServiceLinks", false}, // they would be variables of the agent
                      {"hostNetwork", false},
                      {"hostPID", false},
                      {"hostIPC", false},
                      {"securityContext", context},
                      {"initContainers", Json::array({make_preparation(plan)})},
                      {"containers", Json::array({make_container(plan, arguments)})},
                      {"volumes", volumes_of(plan)}};
    Json spec = {{"backoffLimit", 0}, {"ttlSecondsAfterFinished", kept_seconds}};
    if (plan.policy.limits.runtime) spec["activeDeadlineSeconds"] = plan.policy.limits.runtime->amount;
    spec["template"] = {{"metadata", {{"labels", labels_of(plan)}}}, {"spec", pod}};
    return {{"apiVersion", "batch/v1"},
            {"kind", "Job"},
            {"metadata", {{"name", plan.name}, {"namespace", namespace_of(plan)}, {"labels", labels_of(plan)}}},
            {"spec", spec}};
}

} // namespace pi_agent
