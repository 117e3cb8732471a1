// A plan as objects of Kubernetes: one pod, run once, as the user who owns the workspace (there is no host whose accounts it could meet),
// and what it needs around it: namespace, quota, volume, settings, network.
#include "admin/render/render.hpp"
#include "common/base/build_settings.hpp"
#include "common/host/beneath.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <cctype>

namespace pi_agent {

std::string namespace_of(const RenderPlan &plan)
{
    constexpr std::size_t stem_limit = 63 - 9; // a DNS label, less the hash
    std::string name = plan.user.name;
    for (char &byte : name)
        if (const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9'); !is_plain) byte = '-';
    std::string label = "pi-agent-" + name;
    if (name == plan.user.name && name.back() != '-' && label.size() <= stem_limit) return label;
    // Two users whose names differ only in characters that a label cannot have get different names.
    const std::string alias = alias_of("/" + plan.user.name);
    return label.substr(0, stem_limit) + alias.substr(alias.rfind('-'));
}

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *settings_suffix = "-settings";
constexpr const char *seccomp_on_node = "pi-agent/seccomp.json"; // below the kubelet's directory of profiles
constexpr unsigned kept_seconds = 3600;                          // of a Job that has ended, to read its log
constexpr const char *scratch_on_disk = "20Gi";                  // of a node
constexpr const char *scratch_in_memory = "2Gi";                 // counts against the container's memory, too

Json object(const char *version, const char *kind, const Json &metadata, const Json &spec)
{
    Json made = {{"apiVersion", version}, {"kind", kind}, {"metadata", metadata}};
    if (!spec.is_null()) made["spec"] = spec;
    return made;
}

Json in_namespace(const RenderPlan &plan, const std::string &name)
{
    return {{"name", name}, {"namespace", namespace_of(plan)}};
}

// What is read-only in the agent's directory, by the names of files.
std::map<std::string, std::string> documents_of(const RenderPlan &plan)
{
    auto documents = plan.policy.documents;
    if (plan.policy.settings_lock) documents.emplace("settings.json", "{}"); // a lock needs something to mount
    return documents;
}

Json labels_of(const RenderPlan &plan)
{
    return {{"app.kubernetes.io/name", "pi-agent"}, {"app.kubernetes.io/instance", plan.name}};
}

// The name of the Secret with the variables of one file of env_files.
std::string secret_name(const RenderPlan &plan, std::size_t index)
{
    return fmt::format("{}-env-{}", plan.name, index + 1);
}

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
    // What is above the documents is mounted, too, so that it cannot be renamed; in every Job, so that no other Job leaves a link there.
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
    const Json in_memory = {{"medium", "Memory"}, {"sizeLimit", scratch_in_memory}}, on_disk = {{"sizeLimit", scratch_on_disk}};
    for (const char *name : {"tmp", "var-tmp"})
        volumes.push_back({{"name", name}, {"emptyDir", plan.policy.scratch == ScratchKind::tmpfs ? in_memory : on_disk}});
    return volumes;
}

void add_amounts(const RenderPlan &plan, std::uint64_t times, const std::string &prefix, Json &amounts)
{
    const auto &limits = plan.policy.limits;
    if (limits.memory) amounts[prefix + "memory"] = std::to_string(times * limits.memory->amount);
    if (limits.cpu) amounts[prefix + "cpu"] = fmt::format("{}m", times * limits.cpu->amount * 10);
}

// A quota wants them of each container.
void add_resources(const RenderPlan &plan, Json &container)
{
    Json most = Json::object();
    add_amounts(plan, 1, "", most);
    if (!most.empty()) container["resources"] = {{"limits", most}, {"requests", most}};
}

Json confinement()
{
    return {{"allowPrivilegeEscalation", false},
            {"privileged", false},
            {"capabilities", {{"drop", Json::array({"ALL"})}}},
            {"readOnlyRootFilesystem", true}};
}

Json container_of(const RenderPlan &plan, const char *name, const std::vector<std::string> &command)
{
    return {{"name", name}, {"image", plan.image}, {"imagePullPolicy", "IfNotPresent"}, {"command", command}};
}

// What is mounted from the workspace must exist, and belong to the agent: the kubelet would make it as root.
Json make_preparation(const RenderPlan &plan)
{
    Json container =
        container_of(plan, "directories", {"/bin/mkdir", "-p", "/workspace/project", std::string("/workspace/home/") + agent_directory});
    container["workingDir"] = "/";
    container["securityContext"] = confinement();
    container["volumeMounts"] = Json::array({mount_of("workspace", "/workspace", "", false)});
    add_resources(plan, container);
    return container;
}

// Kubernetes puts variables into what it starts: $(NAME) is one's value, and $$ a dollar sign.
std::string kubernetes_word(const std::string &text)
{
    std::string quoted;
    for (const char byte : text)
        quoted.append(byte == '$' ? 2 : 1, byte);
    return quoted;
}

Json make_container(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    Json container = container_of(plan, "agent", {plan.policy.agent.binary});
    for (const auto &argument : arguments)
        container["args"].push_back(kubernetes_word(argument));
    container["workingDir"] = plan.directory;
    container["env"] = Json::array();
    for (const auto &[name, value] : plan.variables)
        container["env"].push_back({{"name", name}, {"value", kubernetes_word(value)}});
    if (arguments.empty()) {
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

Json make_job(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    Json context = {{"runAsNonRoot", true},
                    {"runAsUser", plan.user.uid.value()},
                    {"runAsGroup", plan.user.gid.value()},
                    {"fsGroup", plan.user.gid.value()},
                    {"fsGroupChangePolicy", "OnRootMismatch"}};
    for (const Gid group : plan.groups)
        context["supplementalGroups"].push_back(group.value());
    context["seccompProfile"] = {{"type", "Localhost"}, {"localhostProfile", seccomp_on_node}};
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
    Json metadata = in_namespace(plan, plan.name);
    metadata["labels"] = labels_of(plan);
    return object("batch/v1", "Job", metadata, spec);
}

// Only Jobs of one user are in it, and no pod that is less confined than these.
Json make_namespace(const RenderPlan &plan)
{
    Json labels = Json::object();
    for (const char *mode : {"enforce", "audit", "warn"})
        labels[std::string("pod-security.kubernetes.io/") + mode] = "restricted";
    return object("v1", "Namespace", {{"name", namespace_of(plan)}, {"labels", labels}}, {});
}

Json make_quota(const RenderPlan &plan)
{
    const std::uint64_t sessions = in_force(plan.policy.limits, &LimitsPolicy::sessions);
    Json hard = {{"pods", std::to_string(sessions)}}; // those that have ended do not count
    add_amounts(plan, sessions, "limits.", hard);
    return object("v1", "ResourceQuota", in_namespace(plan, "pi-agent-sessions"), {{"hard", hard}});
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
    return object("v1", "PersistentVolume", {{"name", plan.name}}, spec);
}

Json make_claim(const RenderPlan &plan, const WorkspaceVolume &volume)
{
    Json spec = {{"accessModes", Json::array({"ReadWriteMany"})},
                 {"storageClassName", volume.kind == WorkspaceVolume::Kind::storage_class ? "pi-agent-workspaces" : ""},
                 {"resources", {{"requests", {{"storage", workspace_size}}}}}};
    if (volume.kind != WorkspaceVolume::Kind::storage_class) spec["volumeName"] = plan.name;
    return object("v1", "PersistentVolumeClaim", in_namespace(plan, plan.name), spec);
}

// Both directions, as on a host. A pod's own loopback is always its own.
Json make_network(const RenderPlan &plan)
{
    Json peers = Json::array();
    if (plan.policy.network.mode == NetworkMode::listed)
        for (const auto &range : plan.policy.network.allowed)
            peers.push_back({{"ipBlock", {{"cidr", to_string(range)}}}});
    Json spec = {{"podSelector", {{"matchLabels", labels_of(plan)}}}, {"policyTypes", Json::array({"Ingress", "Egress"})}};
    if (!peers.empty()) {
        spec["ingress"] = Json::array({{{"from", peers}}});
        spec["egress"] = Json::array({{{"to", peers}}});
    }
    return object("networking.k8s.io/v1", "NetworkPolicy", in_namespace(plan, plan.name), spec);
}

std::vector<std::string> notes(const RenderPlan &plan, const WorkspaceVolume &volume)
{
    std::vector<std::string> lines = {
        fmt::format("The image has the agent at {}. Each node has the profile of 'pi-agentctl render --target seccomp' at",
                    plan.policy.agent.binary),
        fmt::format("/var/lib/kubelet/seccomp/{}. The workspace belongs to {}:{} and holds the directories project and home.",
                    seccomp_on_node, plan.user.uid.value(), plan.user.gid.value()),
        fmt::format("Of {} it has nothing: what the agent finds are the documents of the policy, and what is in the workspace.",
                    plan.rules.config_directory)};
    if (plan.policy.network.mode != NetworkMode::full)
        lines.emplace_back("A network plugin that enforces NetworkPolicy is needed: without one, the agent reaches all that a pod "
                           "reaches.");
    if (volume.kind == WorkspaceVolume::Kind::efs)
        lines.push_back(
            fmt::format("The access point is this workspace's alone: root directory /workspaces/{}, user {}:{}; the file system has "
                        "elastic throughput and general-purpose performance.",
                        plan.name, plan.user.uid.value(), plan.user.gid.value()));
    for (std::size_t index = 0; index < plan.env_files.size(); ++index)
        lines.push_back(fmt::format("Secret {} holds the variables of {}.", secret_name(plan, index), plan.env_files[index].file.path));
    return lines;
}

// --- The text of a rendering: its head, and data as YAML.

using Json = nlohmann::ordered_json;

// In every version of YAML that a reader may follow.
bool means_something_else(std::string text)
{
    std::ranges::transform(text, text.begin(), [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
    constexpr std::array<std::string_view, 9> words = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
    return std::ranges::find(words, text) != words.end();
}

bool is_plain_in_yaml(const std::string &text)
{
    const auto is_letter = [](char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); };
    const auto is_harmless = [&](char byte) {
        return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '/' || byte == '.' || byte == '_' || byte == '-';
    };
    return !text.empty() && (is_letter(text[0]) || text[0] == '/') && std::ranges::all_of(text, is_harmless) && !means_something_else(text);
}

void write(YAML::Emitter &emitter, const Json &data)
{
    if (data.is_object()) {
        emitter << YAML::BeginMap;
        for (const auto &[key, value] : data.items()) {
            emitter << YAML::Key;
            write(emitter, Json(key));
            emitter << YAML::Value;
            write(emitter, value);
        }
        emitter << YAML::EndMap;
    } else if (data.is_array()) {
        emitter << YAML::BeginSeq;
        for (const auto &item : data)
            write(emitter, item);
        emitter << YAML::EndSeq;
    } else if (data.is_string()) {
        const auto text = data.get<std::string>();
        if (!is_plain_in_yaml(text)) emitter << YAML::DoubleQuoted;
        emitter << text;
    } else {
        emitter << data.dump(); // numbers, true, false and null are the same
    }
}

// What the runner makes again at each start, and a rendering does not have: one line each.
std::vector<std::string> left_out(const RenderPlan &plan)
{
    const auto is_default = [](const HomeDirectories &directories) {
        return std::ranges::any_of(directories.paths, [](const PolicyPath &path) { return path.where.line == 0; });
    };
    const auto &policy = plan.policy;
    std::vector<std::string> lines;
    if (policy.git_identity) lines.emplace_back("git_identity: commits do not carry the user's name");
    if (policy.box_notes) lines.emplace_back("box_notes: the agent is not told about its sandbox");
    if (is_default(policy.toolchains.readable)) lines.emplace_back("toolchains.readable: default");
    if (is_default(policy.toolchains.caches)) lines.emplace_back("toolchains.caches: default");
    if (policy.projects.aftermath) lines.emplace_back("projects.aftermath: nobody tells what was left that runs code outside");
    if (!policy.projects.protect) lines.emplace_back("projects.protect: what git executes and does not exist yet can be made");
    if (!policy.limits.memory) lines.emplace_back("limits.memory: without an amount in the policy the Job has no limit");
    lines.emplace_back("limits.tasks: a node has the limit, or the Job is not limited (podPidsLimit of the kubelet)");
    return lines;
}

} // namespace

std::vector<Json> kubernetes_objects(const RenderPlan &plan, const WorkspaceVolume &volume, const std::vector<std::string> &arguments)
{
    std::vector<Json> objects = {make_namespace(plan), make_quota(plan)};
    if (volume.kind != WorkspaceVolume::Kind::storage_class) objects.push_back(make_volume(plan, volume));
    objects.push_back(make_claim(plan, volume));
    if (const auto documents = documents_of(plan); !documents.empty()) {
        objects.push_back(object("v1", "ConfigMap", in_namespace(plan, plan.name + settings_suffix), {}));
        objects.back()["data"] = documents;
    }
    if (plan.policy.network.mode != NetworkMode::full) objects.push_back(make_network(plan));
    objects.push_back(make_job(plan, arguments));
    return objects;
}

std::string render_kubernetes(const RenderPlan &plan, const WorkspaceVolume &volume, const std::vector<std::string> &arguments)
{
    std::string text = head_of(plan, notes(plan, volume));
    for (const auto &one : kubernetes_objects(plan, volume, arguments))
        text += "---\n" + to_yaml(one);
    return text;
}

std::string head_of(const RenderPlan &plan, const std::vector<std::string> &more)
{
    std::string text =
        fmt::format("# pi-agent {}: what {} grants to {} in {}, for kubernetes. Render it again when either changes.\n", build::version,
                    escape_for_display(plan.rules.entry), plan.user.name, escape_for_display(plan.directory));
    for (const auto &line : more)
        text += "# " + escape_for_display(line) + "\n";
    const auto lines = left_out(plan);
    if (!lines.empty()) text += "# Not in it, because the runner makes it at each start:\n";
    for (const auto &line : lines)
        text += "#   " + line + "\n";
    for (const auto &notice : plan.notices)
        text += "# Of the project: " + escape_for_display(notice) + "\n";
    return text;
}

std::string to_yaml(const Json &data)
{
    YAML::Emitter emitter;
    write(emitter, data);
    return std::string(emitter.c_str()) + "\n";
}

} // namespace pi_agent
