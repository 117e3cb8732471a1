// The rendered Job against the restricted Pod Security Standard, control by control, and against what the policy says:
// admin/render/render.hpp
#include "admin/render/render.hpp"

#include "support/failure.hpp"
#include "support/policy_text.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <set>

using namespace pi_agent;
using namespace pi_agent::test;

namespace kubernetes_job_test {

namespace {

using Json = nlohmann::ordered_json;

RenderPlan plan_with(const std::string &lines, const std::vector<EnvAssignment> &managed = {})
{
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n" + lines);
    const Account alice{"alice", Uid(1000), Gid(1000), "/home/alice", {1000}};
    const RenderFacts facts{{alice,
                             {"pi-agent", Uid(990), Gid(985), "/nonexistent", {985}},
                             "/home/alice/projects",
                             "demo",
                             {Gid(1001)},
                             {},
                             {{"demo/.git", PointKind::prefix}, {"demo/.git/hooks", PointKind::read_only}},
                             {},
                             "localhost/pi-agent:test"},
                            managed,
                            {}};
    return plan_rendering(policy, std::get<AccessRules>(find_access_rules(policy, alice, "p.yaml")), facts);
}

std::vector<Json> objects_of(const std::string &lines, const std::string &volume = "")
{
    return kubernetes_objects(plan_with(lines), parse_workspace_volume(volume), {"-p", "hello"});
}

Json object_of(const std::vector<Json> &objects, const std::string &kind)
{
    for (const auto &one : objects)
        if (one.at("kind") == kind) return one;
    return {};
}

Json pod_of(const Json &job)
{
    return job.at("spec").at("template").at("spec");
}

// Every violation of the profile "restricted" (and so of "baseline"), by the names of the standard's controls.
std::set<std::string> violations(const Json &pod)
{
    std::set<std::string> found;
    const auto require = [&](bool holds, const std::string &control) {
        if (!holds) found.insert(control);
    };
    const Json none = Json::object();
    const Json context = pod.value("securityContext", none);
    for (const char *key : {"hostNetwork", "hostPID", "hostIPC"})
        require(!pod.value(key, false), "host namespaces");
    const std::set<std::string> volume_types = {"configMap", "csi",   "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
                                                "projected", "secret"};
    for (const auto &volume : pod.value("volumes", Json::array()))
        for (const auto &[key, value] : volume.items())
            require(key == "name" || volume_types.contains(key), "volume types");
    require(context.value("sysctls", Json::array()).empty(), "sysctls");
    const auto look_at = [&](const Json &container) {
        const Json own = container.value("securityContext", none);
        const auto effective = [&](const char *key) { return own.contains(key) ? own.at(key) : context.value(key, Json()); };
        require(!own.value("privileged", false), "privileged containers");
        require(own.contains("allowPrivilegeEscalation") && !own.at("allowPrivilegeEscalation").get<bool>(), "privilege escalation");
        require(effective("runAsNonRoot") == true, "running as non-root");
        require(effective("runAsUser") != 0, "running as non-root user");
        const Json profile = effective("seccompProfile");
        require(profile.is_object() && (profile.at("type") == "RuntimeDefault" ||
                                        (profile.at("type") == "Localhost" && !profile.value("localhostProfile", "").empty())),
                "seccomp");
        const Json capabilities = own.value("capabilities", none);
        require(capabilities.value("drop", Json::array()) == Json::array({"ALL"}), "capabilities");
        for (const auto &added : capabilities.value("add", Json::array()))
            require(added == "NET_BIND_SERVICE", "capabilities");
        require(own.value("procMount", "Default") == "Default", "/proc mount type");
        for (const char *key : {"seLinuxOptions", "windowsOptions"})
            require(!own.contains(key) && !context.contains(key), key);
        for (const auto &port : container.value("ports", Json::array()))
            require(port.value("hostPort", 0) == 0, "host ports");
        for (const char *hook : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"})
            require(!container.contains(hook), "host probes and hooks");
    };
    for (const char *kind : {"initContainers", "containers", "ephemeralContainers"})
        for (const auto &container : pod.value(kind, Json::array()))
            look_at(container);
    return found;
}

} // namespace

TEST_CASE("the Job violates no control of the restricted Pod Security Standard, whatever the policy says")
{
    for (const char *lines : {"", "network: none\n", "network: [10.0.0.0/8]\n", "scratch: tmpfs\n", "settings: {a: b}\n",
                              "limits: {memory: 8G, cpu: 400%, runtime: 2h, sessions: 3}\n", "projects: {paths: alias}\n"}) {
        const auto job = object_of(objects_of(lines), "Job");
        CHECK_MESSAGE(violations(pod_of(job)).empty(), lines);
        CHECK(pod_of(job).at("containers").size() == 1);
    }
}

TEST_CASE("each control that is taken away is missed")
{
    const auto good = pod_of(object_of(objects_of(""), "Job"));
    const auto violated = [&](const std::function<void(Json & pod, Json & container)> &change) {
        Json pod = good;
        change(pod, pod.at("containers").at(0));
        return violations(pod);
    };
    using Violated = std::set<std::string>;
    CHECK(violated([](Json &pod, Json &) { pod["hostNetwork"] = true; }) == Violated{"host namespaces"});
    CHECK(violated([](Json &pod, Json &) {
              pod["volumes"].push_back({{"name", "x"}, {"hostPath", {{"path", "/"}}}});
          }) == Violated{"volume types"});
    CHECK(violated([](Json &pod, Json &) { pod["securityContext"].erase("runAsNonRoot"); }) == Violated{"running as non-root"});
    CHECK(violated([](Json &pod, Json &) { pod["securityContext"]["runAsUser"] = 0; }) == Violated{"running as non-root user"});
    CHECK(violated([](Json &pod, Json &) { pod["securityContext"].erase("seccompProfile"); }) == Violated{"seccomp"});
    CHECK(violated([](Json &, Json &container) { container["securityContext"].erase("allowPrivilegeEscalation"); }) ==
          Violated{"privilege escalation"});
    CHECK(violated([](Json &, Json &container) { container["securityContext"]["privileged"] = true; }) ==
          Violated{"privileged containers"});
    CHECK(violated([](Json &, Json &container) { container["securityContext"]["capabilities"].erase("drop"); }) ==
          Violated{"capabilities"});
}

TEST_CASE("beyond the standard a Job has a read-only root, no token of the cluster's, and runs once")
{
    const auto job = object_of(objects_of("limits: {memory: 8G, cpu: 150%, runtime: 2h}\n"), "Job");
    const auto pod = pod_of(job);
    CHECK(job.at("apiVersion") == "batch/v1");
    CHECK(job.at("spec").at("backoffLimit") == 0);
    CHECK(job.at("spec").at("ttlSecondsAfterFinished") == 3600);
    CHECK(job.at("spec").at("activeDeadlineSeconds") == 7200);
    CHECK(pod.at("restartPolicy") == "Never");
    CHECK(pod.at("automountServiceAccountToken") == false);
    CHECK(pod.at("securityContext").at("runAsUser") == 1000);
    CHECK(pod.at("securityContext").at("supplementalGroups") == Json::array({1001}));
    for (const char *kind : {"initContainers", "containers"})
        for (const auto &container : pod.at(kind)) {
            CHECK(container.at("securityContext").at("readOnlyRootFilesystem") == true);
            CHECK(container.at("resources").at("limits") == Json{{"memory", "8589934592"}, {"cpu", "1500m"}});
        }
    const auto &container = pod.at("containers").at(0);
    CHECK(container.at("workingDir") == "/home/alice/projects/demo");
    CHECK(container.at("args") == Json::array({"-p", "hello"}));
}

TEST_CASE("the workspace is one claim, in which what is protected is read-only, and all above it a mount of its own")
{
    const auto job = object_of(objects_of(""), "Job");
    std::map<std::string, Json> mounts;
    const auto pod = pod_of(job);
    for (const auto &mount : pod.at("containers").at(0).at("volumeMounts"))
        mounts[mount.at("mountPath")] = mount;
    CHECK(mounts.at("/home/alice/projects").at("subPath") == "project");
    CHECK_FALSE(mounts.at("/home/alice/projects/demo/.git").contains("readOnly"));
    CHECK(mounts.at("/home/alice/projects/demo/.git/hooks").at("readOnly") == true);
    CHECK(mounts.at("/var/lib/pi-agent/users/alice/home").at("subPath") == "home");
    CHECK(mounts.at("/var/lib/pi-agent/users/alice/home/.pi").at("subPath") == "home/.pi");
    CHECK(mounts.at("/var/lib/pi-agent/users/alice/home/.pi/agent").at("subPath") == "home/.pi/agent");
    CHECK(mounts.contains("/tmp"));
}

TEST_CASE("a volume is the cluster's, NFS with a directory for each workspace, or an access point of EFS")
{
    CHECK(object_of(objects_of(""), "PersistentVolume").is_null());
    CHECK(object_of(objects_of(""), "PersistentVolumeClaim").at("spec").at("storageClassName") == "pi-agent-workspaces");
    const auto plan = plan_with("");
    const auto nfs = object_of(objects_of("", "nfs.example.net:/workspaces"), "PersistentVolume");
    CHECK(nfs.at("spec").at("nfs") == Json{{"server", "nfs.example.net"}, {"path", "/workspaces/" + plan.name}});
    const auto efs = object_of(objects_of("", "efs:fs-12:fsap-34"), "PersistentVolume");
    CHECK(efs.at("spec").at("csi") == Json{{"driver", "efs.csi.aws.com"}, {"volumeHandle", "fs-12::fsap-34"}});
    const auto text = render_kubernetes(plan, parse_workspace_volume("efs:fs-12:fsap-34"), {});
    CHECK(contains(text, "root directory /workspaces/" + plan.name + ", user 1000:1000"));
    CHECK(contains(text, "elastic throughput and general-purpose performance"));
    for (const char *odd : {"nfs", ":/a", "host:", "host:relative", "efs:fs-12", "efs:fs-12:ap"})
        CHECK(failure_of([&] { return parse_workspace_volume(odd); }).status == 64);
}

TEST_CASE("the network of the policy is a NetworkPolicy of this Job alone")
{
    CHECK(object_of(objects_of(""), "NetworkPolicy").is_null());
    const auto none = object_of(objects_of("network: none\n"), "NetworkPolicy").at("spec");
    CHECK(none.at("policyTypes") == Json::array({"Ingress", "Egress"}));
    CHECK_FALSE((none.contains("ingress") || none.contains("egress")));
    CHECK(none.at("podSelector").at("matchLabels") ==
          object_of(objects_of(""), "Job").at("spec").at("template").at("metadata").at("labels"));
    const auto listed = object_of(objects_of("network: [10.0.0.0/8, 'fd00::/8']\n"), "NetworkPolicy").at("spec");
    const Json peers = Json::array({Json{{"ipBlock", {{"cidr", "10.0.0.0/8"}}}}, Json{{"ipBlock", {{"cidr", "fd00::/8"}}}}});
    CHECK(listed.at("egress").at(0).at("to") == peers);
    CHECK(listed.at("ingress").at(0).at("from") == peers);
}

TEST_CASE("the namespace enforces the standard, and its quota is the policy's sessions of one user")
{
    const auto objects = objects_of("limits: {memory: 1G, sessions: 3}\n");
    CHECK(objects.at(0).at("metadata").at("labels").at("pod-security.kubernetes.io/enforce") == "restricted");
    CHECK(object_of(objects, "ResourceQuota").at("spec").at("hard") == Json{{"pods", "3"}, {"limits.memory", "3221225472"}});
    CHECK(object_of(objects_of(""), "ResourceQuota").at("spec").at("hard") == Json{{"pods", "8"}});
    for (const auto &one : objects)
        if (one.at("kind") != "Namespace") CHECK(one.at("metadata").at("namespace") == "pi-agent-alice");
}

TEST_CASE("what a cluster would take for a variable stays text")
{
    const auto plan = plan_with("env: {PROMPT: '$(HOME) costs $$'}\n");
    const auto job = object_of(kubernetes_objects(plan, {}, {"-p", "$(PATH) $1"}), "Job");
    const auto pod = pod_of(job);
    const auto &container = pod.at("containers").at(0);
    CHECK(container.at("args") == Json::array({"-p", "$$(PATH) $$1"}));
    const Json variable = {{"name", "PROMPT"}, {"value", "$$(HOME) costs $$$$"}};
    CHECK(std::find(container.at("env").begin(), container.at("env").end(), variable) != container.at("env").end());
}

TEST_CASE("each user has a namespace, whatever their names have that a label has not")
{
    auto plan = plan_with("");
    std::set<std::string> names;
    for (const auto &user :
         std::vector<std::string>{"a-b", "a_b", "a.b", "A.b", "a-b-", "alice", "0", std::string(70, 'x'), std::string(71, 'x')}) {
        plan.user.name = user;
        const std::string name = namespace_of(plan);
        CHECK(names.insert(name).second);
        CHECK(name.size() <= 63);
        CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
        CHECK(name.back() != '-');
    }
    CHECK(names.contains("pi-agent-a-b"));
    CHECK(names.contains("pi-agent-alice"));
}

TEST_CASE("settings are a ConfigMap that is mounted read-only, and files of variables are Secrets by name")
{
    const auto objects = objects_of("settings: {defaultProvider: local}\n");
    CHECK(object_of(objects, "ConfigMap").at("data").at("settings.json") == R"({"defaultProvider":"local"})");
    CHECK_FALSE(object_of(objects, "ConfigMap").contains("immutable")); // the next rendering changes it
    const auto locked = objects_of("settings_lock: true\n");
    CHECK(object_of(locked, "ConfigMap").at("data") == Json{{"settings.json", "{}"}});
    const Json mount = {{"name", "settings"},
                        {"mountPath", "/var/lib/pi-agent/users/alice/home/.pi/agent/settings.json"},
                        {"subPath", "settings.json"},
                        {"readOnly", true}};
    const Json mounts = pod_of(object_of(locked, "Job")).at("containers").at(0).at("volumeMounts");
    CHECK(std::find(mounts.begin(), mounts.end(), mount) != mounts.end());
    const auto plan = plan_with("env_files: [/etc/pi-agent/env]\n", {{"TOKEN", "s3cret", "/etc/pi-agent/env:1"}});
    const auto text = render_kubernetes(plan, {}, {});
    CHECK_FALSE(contains(text, "s3cret"));
    CHECK(contains(text, "secretRef:\n"));
    CHECK(contains(text, plan.name + "-env-1"));
}

} // namespace kubernetes_job_test
