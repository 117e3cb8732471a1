// What engines read: a plan as objects of Kubernetes, which are one pod, run once, as the user who owns the workspace (there is no host
// whose accounts it could meet), with namespace, quota, volume, settings and network around it; and the filter of system calls.
#include "admin/render/data.hpp"
#include "admin/render/render.hpp"
#include "admin/text/terminal.hpp"
#include "runner/filter/call_rules.hpp"

#include <fmt/format.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

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
constexpr const char *scratch_on_disk = "20Gi";                  // of a node
constexpr const char *scratch_in_memory = "2Gi";                 // counts against the container's memory, too

// An object as kubernetes.json has it, with null where the plan says the value. Without a value there, that key goes at the end.
Json object_of(const RenderPlan &plan, const char *kind)
{
    static const Json objects = Json::parse(PI_AGENT_KUBERNETES);
    Json object = objects.at(kind);
    auto &metadata = object["metadata"];
    if (metadata["name"].is_null()) metadata["name"] = plan.name;
    if (metadata.contains("namespace")) metadata["namespace"] = namespace_of(plan);
    return object;
}

void erase_nulls(Json &data)
{
    if (data.is_object())
        for (auto entry = data.begin(); entry != data.end();)
            entry = entry->is_null() ? data.erase(entry) : std::next(entry);
    for (auto &inner : data)
        if (inner.is_structured()) erase_nulls(inner);
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

void add_volumes(const RenderPlan &plan, Json &volumes)
{
    volumes[0]["persistentVolumeClaim"]["claimName"] = plan.name;
    if (!documents_of(plan).empty()) volumes.push_back({{"name", "settings"}, {"configMap", {{"name", plan.name + settings_suffix}}}});
    const Json in_memory = {{"medium", "Memory"}, {"sizeLimit", scratch_in_memory}}, on_disk = {{"sizeLimit", scratch_on_disk}};
    for (const char *name : {"tmp", "var-tmp"})
        volumes.push_back({{"name", name}, {"emptyDir", plan.policy.scratch == ScratchKind::tmpfs ? in_memory : on_disk}});
}

void add_amounts(const RenderPlan &plan, std::uint64_t times, const std::string &prefix, Json &amounts)
{
    const auto &limits = plan.policy.limits;
    if (limits.memory) amounts[prefix + "memory"] = std::to_string(times * limits.memory->amount);
    if (limits.cpu) amounts[prefix + "cpu"] = fmt::format("{}m", times * limits.cpu->amount * 10);
}

// Kubernetes puts variables into what it starts: $(NAME) is one's value, and $$ a dollar sign.
std::string kubernetes_word(const std::string &text)
{
    std::string quoted;
    for (const char byte : text)
        quoted.append(byte == '$' ? 2 : 1, byte);
    return quoted;
}

void complete_container(const RenderPlan &plan, const std::vector<std::string> &arguments, Json &container)
{
    container["command"] = Json::array({plan.policy.agent.binary});
    for (const auto &argument : arguments)
        container["args"].push_back(kubernetes_word(argument));
    container["workingDir"] = plan.directory;
    for (const auto &[name, value] : plan.variables)
        container["env"].push_back({{"name", name}, {"value", kubernetes_word(value)}});
    if (arguments.empty()) container["stdin"] = container["tty"] = true; // for kubectl attach
    for (std::size_t index = 0; index < plan.env_files.size(); ++index)
        container["envFrom"].push_back({{"secretRef", {{"name", secret_name(plan, index)}}}});
    Json mounts = Json::array();
    const auto add = [&](const char *volume, const std::string &place, const std::string &below, bool read_only = false) {
        mounts.push_back({{"name", volume}, {"mountPath", place}});
        if (!below.empty()) mounts.back()["subPath"] = below;
        if (read_only) mounts.back()["readOnly"] = true;
    };
    add("workspace", plan.home, "home");
    // What is above the documents is mounted, too, so that it cannot be renamed; in every Job, so that no other Job leaves a link there.
    for (const auto &directory : {split_last(agent_directory).first, std::string(agent_directory)})
        add("workspace", join_path(plan.home, directory), join_path("home", directory));
    for (const auto &document : documents_of(plan))
        add("settings", plan.home + "/" + agent_directory + "/" + document.first, document.first, true);
    add("workspace", plan.place, "project");
    for (const auto &[path, kind] : plan.points)
        add("workspace", join_path(plan.place, path), join_path("project", path), kind == PointKind::read_only);
    add("tmp", "/tmp", "");
    add("var-tmp", "/var/tmp", "");
    container["volumeMounts"] = mounts;
}

// Links to services (enableServiceLinks) would be variables of the agent. A Job that has ended stays for an hour, to read its log.
Json make_job(const RenderPlan &plan, const std::vector<std::string> &arguments)
{
    Json job = object_of(plan, "Job");
    job["metadata"]["labels"] = job["spec"]["template"]["metadata"]["labels"] = labels_of(plan);
    if (plan.policy.limits.runtime) job["spec"]["activeDeadlineSeconds"] = plan.policy.limits.runtime->amount;
    auto &pod = job["spec"]["template"]["spec"];
    auto &context = pod["securityContext"];
    context["runAsUser"] = plan.user.uid.value();
    context["runAsGroup"] = context["fsGroup"] = plan.user.gid.value();
    for (const Gid group : plan.groups)
        context["supplementalGroups"].push_back(group.value());
    context["seccompProfile"]["localhostProfile"] = seccomp_on_node;
    add_volumes(plan, pod["volumes"]);
    complete_container(plan, arguments, pod["containers"][0]);
    // What is mounted from the workspace must exist, and belong to the agent: the kubelet would make it as root.
    pod["initContainers"][0]["command"].push_back(std::string("/workspace/home/") + agent_directory);
    Json most; // a quota wants them of each container
    add_amounts(plan, 1, "", most);
    for (const char *containers : {"initContainers", "containers"}) {
        pod[containers][0]["image"] = plan.image;
        if (!most.is_null()) pod[containers][0]["resources"] = {{"limits", most}, {"requests", most}};
    }
    erase_nulls(job);
    return job;
}

Json make_claim(const RenderPlan &plan, const WorkspaceVolume &volume)
{
    Json claim = object_of(plan, "PersistentVolumeClaim");
    if (volume.kind == WorkspaceVolume::Kind::storage_class) return claim;
    claim["spec"]["storageClassName"] = "";
    claim["spec"]["volumeName"] = plan.name;
    return claim;
}

// Both directions, as on a host. A pod's own loopback is always its own.
Json make_network(const RenderPlan &plan)
{
    Json network = object_of(plan, "NetworkPolicy");
    auto &spec = network["spec"];
    spec["podSelector"]["matchLabels"] = labels_of(plan);
    Json peers = Json::array();
    if (plan.policy.network.mode == NetworkMode::listed)
        for (const auto &range : plan.policy.network.allowed)
            peers.push_back({{"ipBlock", {{"cidr", to_string(range)}}}});
    if (peers.empty()) return network;
    spec["ingress"] = Json::array({{{"from", peers}}});
    spec["egress"] = Json::array({{{"to", peers}}});
    return network;
}

// --- The text of a rendering: its head, and data as YAML.

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
        if (!is_plain_word(text) || !is_made_of(text, "/._-") || text[0] == '_') emitter << YAML::DoubleQuoted;
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
    if (policy.projects.undo.on) lines.emplace_back("projects.undo: nothing is kept that could be taken back");
    if (!policy.projects.protect) lines.emplace_back("projects.protect: what git executes and does not exist yet can be made");
    if (!policy.limits.memory) lines.emplace_back("limits.memory: without an amount in the policy the Job has no limit");
    lines.emplace_back("limits.tasks: a node has the limit, or the Job is not limited (podPidsLimit of the kubelet)");
    return lines;
}

// --- A system-call filter as data, and as the engines' JSON.

using Conditions = std::vector<PassingCondition>; // one of them holds

// All the ways for a test to fail: one bit that is different.
Conditions failing(const ArgumentTest &test)
{
    if (!test.equal) return {{{test.index, {test.mask, test.value}}}};
    Conditions conditions;
    for (std::uint64_t bit = 1; bit != 0; bit <<= 1U)
        if ((test.mask & bit) != 0) conditions.push_back({{test.index, {bit, ~test.value & bit}}});
    return conditions;
}

// Empty if both cannot hold.
std::optional<PassingCondition> both(PassingCondition one, const PassingCondition &other)
{
    for (const auto &[index, bits] : other) {
        const auto [known, is_new] = one.emplace(index, bits);
        if (is_new) continue;
        ArgumentBits &merged = known->second;
        if (((merged.value ^ bits.value) & merged.mask & bits.mask) != 0) return std::nullopt;
        merged = {merged.mask | bits.mask, merged.value | bits.value};
    }
    return one;
}

// True when `wider` holds wherever `narrower` does.
bool holds_wherever(const PassingCondition &wider, const PassingCondition &narrower)
{
    return std::ranges::all_of(wider, [&](const auto &wanted) {
        const auto found = narrower.find(wanted.first);
        return found != narrower.end() && (found->second.mask & wanted.second.mask) == wanted.second.mask &&
               (found->second.value & wanted.second.mask) == wanted.second.value;
    });
}

Conditions all_of(const Conditions &one, const Conditions &other)
{
    Conditions conditions;
    for (const auto &first : one)
        for (const auto &second : other)
            if (auto merged = both(first, second)) conditions.push_back(std::move(*merged));
    // Without those that follow from another one.
    Conditions kept;
    for (const auto &condition : conditions) {
        if (std::ranges::any_of(kept, [&](const auto &known) { return holds_wherever(known, condition); })) continue;
        std::erase_if(kept, [&](const auto &known) { return holds_wherever(condition, known); });
        kept.push_back(condition);
    }
    return kept;
}

#if defined(__x86_64__)
constexpr const char *architecture = "SCMP_ARCH_X86_64";
#elif defined(__aarch64__)
constexpr const char *architecture = "SCMP_ARCH_AARCH64";
#else
constexpr const char *architecture = nullptr;
#endif
static_assert(architecture != nullptr, "name this architecture as the OCI runtime specification does");

} // namespace

std::vector<Json> kubernetes_objects(const RenderPlan &plan, const WorkspaceVolume &volume, const std::vector<std::string> &arguments)
{
    // Only Jobs of one user are in it, and no pod that is less confined than these.
    Json space = object_of(plan, "Namespace");
    space["metadata"]["name"] = namespace_of(plan);
    Json quota = object_of(plan, "ResourceQuota");
    const std::uint64_t sessions = in_force(plan.policy.limits, &LimitsPolicy::sessions);
    quota["spec"]["hard"]["pods"] = std::to_string(sessions); // those that have ended do not count
    add_amounts(plan, sessions, "limits.", quota["spec"]["hard"]);
    std::vector<Json> objects = {space, quota};
    // Network file systems take no notice of the size that its object names; the field must be there.
    if (volume.kind != WorkspaceVolume::Kind::storage_class) {
        Json made = object_of(plan, "PersistentVolume");
        auto &spec = made["spec"];
        spec["claimRef"] = {{"namespace", namespace_of(plan)}, {"name", plan.name}};
        if (volume.kind == WorkspaceVolume::Kind::nfs) {
            spec["nfs"] = {{"server", volume.server}, {"path", volume.path + "/" + plan.name}};
        } else {
            spec["mountOptions"] = {"tls", "nosuid", "nodev"};
            spec["csi"] = {{"driver", "efs.csi.aws.com"}, {"volumeHandle", volume.server + "::" + volume.path}};
        }
        objects.push_back(made);
    }
    objects.push_back(make_claim(plan, volume));
    if (const auto documents = documents_of(plan); !documents.empty()) {
        objects.push_back(object_of(plan, "ConfigMap"));
        objects.back()["metadata"]["name"] = plan.name + settings_suffix;
        objects.back()["data"] = documents;
    }
    if (plan.policy.network.mode != NetworkMode::full) objects.push_back(make_network(plan));
    objects.push_back(make_job(plan, arguments));
    return objects;
}

std::string render_kubernetes(const RenderPlan &plan, const WorkspaceVolume &volume, const std::vector<std::string> &arguments)
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
    // "# " lines: what this is, of which policy, what to know of the cluster, and what is not in it.
    std::string text =
        fmt::format("# pi-agent {}: what {} grants to {} in {}, for kubernetes. Render it again when either changes.\n", build::version,
                    escape_for_display(plan.rules.entry), plan.user.name, escape_for_display(plan.directory));
    for (const auto &line : lines)
        text += "# " + escape_for_display(line) + "\n";
    const auto left = left_out(plan);
    if (!left.empty()) text += "# Not in it, because the runner makes it at each start:\n";
    for (const auto &line : left)
        text += "#   " + line + "\n";
    for (const auto &notice : plan.notices)
        text += "# Of the project: " + escape_for_display(notice) + "\n";
    for (const auto &one : kubernetes_objects(plan, volume, arguments)) {
        // One document, with a line feed at its end. Texts are quoted wherever a reader could take them for anything else. No program of
        // pi-agent reads it again.
        YAML::Emitter emitter;
        write(emitter, one);
        text += "---\n" + std::string(emitter.c_str()) + "\n";
    }
    return text;
}

std::map<std::string, std::vector<PassingCondition>> passing_calls()
{
    std::map<std::string, Conditions> calls;
    for (const char *name : allowed_calls)
        calls[name] = {{}};
    for (const auto &allowance : allowances_of(for_agents))
        calls[allowance.name].push_back({{allowance.test.index, {allowance.test.mask, allowance.test.value}}});
    for (const auto &denial : denials_of({DenialPart::always, DenialPart::unknown, DenialPart::set_gid, DenialPart::tuning})) {
        const auto found = calls.find(denial.name);
        if (found == calls.end()) continue;
        Conditions failures;
        for (const auto &test : denial.tests)
            for (auto &condition : failing(test))
                failures.push_back(std::move(condition));
        found->second = all_of(found->second, failures);
        if (found->second.empty()) calls.erase(found);
    }
    return calls;
}

std::string render_seccomp()
{
    Json always = Json::array();
    Json unknown = Json::array();
    Json conditional = Json::array();
    for (const auto &[name, conditions] : passing_calls())
        for (const auto &condition : conditions) {
            if (condition.empty())
                always.push_back(name);
            else {
                Json arguments = Json::array();
                for (const auto &[index, bits] : condition) {
                    if (bits.mask == whole_argument)
                        arguments.push_back({{"index", index}, {"value", bits.value}, {"op", "SCMP_CMP_EQ"}});
                    else
                        arguments.push_back(
                            {{"index", index}, {"value", bits.mask}, {"valueTwo", bits.value}, {"op", "SCMP_CMP_MASKED_EQ"}});
                }
                conditional.push_back({{"names", Json::array({name})}, {"action", "SCMP_ACT_ALLOW"}, {"args", arguments}});
            }
        }
    for (const auto &call : denials_of({DenialPart::unknown}))
        unknown.push_back(call.name);
    Json calls = Json::array();
    calls.push_back({{"names", always}, {"action", "SCMP_ACT_ALLOW"}});
    calls.push_back({{"names", unknown}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", ENOSYS}});
    for (auto &call : conditional)
        calls.push_back(std::move(call));
    const Json profile = {{"defaultAction", "SCMP_ACT_ERRNO"},
                          {"defaultErrnoRet", EPERM},
                          {"architectures", Json::array({architecture})},
                          {"syscalls", calls}};
    return profile.dump(2) + "\n";
}

} // namespace pi_agent
