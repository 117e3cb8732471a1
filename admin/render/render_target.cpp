// Every demand of a policy, and which engines can meet it.
#include "admin/render/render_plan.hpp"

#include "admin/diagnose/faults.hpp"
#include "common/base/error.hpp"
#include "common/base/problems.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/policy/policy_levels.hpp"
#include "common/policy/policy_sections.hpp"
#include "common/policy/policy_values.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

using Targets = std::set<RenderTarget>;

// On slurm it is our own runner on each node that honours the policy, so it is in every list.
const Targets only_ours = {RenderTarget::slurm};
const Targets on_this_host = {RenderTarget::podman, RenderTarget::quadlet, RenderTarget::systemd, RenderTarget::slurm};
const Targets by_systemd = {RenderTarget::systemd, RenderTarget::slurm};
const Targets in_containers = {RenderTarget::podman, RenderTarget::quadlet, RenderTarget::kubernetes, RenderTarget::slurm};
const Targets in_cluster = {RenderTarget::kubernetes, RenderTarget::slurm};
const Targets without_terminal = {RenderTarget::quadlet, RenderTarget::systemd, RenderTarget::slurm}; // the journal has what they show

// What the policy demands; what the target does not meet of it becomes a problem.
struct Demands {
    RenderTarget target = {};
    Problems problems = {};

    void add(const Position &where, const std::string &key, const std::string &what, const std::string &remedy, const Targets &met_by)
    {
        if (!met_by.contains(target)) problems.add(where, key, std::string(to_string(target)) + " cannot honour it: " + what, remedy);
    }
};

Position file_of(const RenderPlan &plan)
{
    return {plan.rules.where.file, 0, 0};
}

Position place_of_value(const RenderPlan &plan, const char *key)
{
    const auto &places = plan.policy.rules.places;
    const auto found = places.find(key);
    return found == places.end() ? file_of(plan) : found->second.where;
}

bool has_loopback(const IpRange &range)
{
    const auto loopback = loopback_ranges();
    return std::any_of(loopback.begin(), loopback.end(), [&](const IpRange &own) { return overlap(range, own); });
}

void add_network(const RenderPlan &plan, Demands &demands)
{
    const auto &network = plan.policy.network;
    Targets filtering = by_systemd;
    if (network.mode == NetworkMode::loopback)
        demands.add(network.where, "network", "loopback is this host's own", "say none or full", filtering);
    if (network.mode == NetworkMode::hosts)
        demands.add(network.where, "network", "only the runner starts the gate that connects to its hosts, and to no other",
                    "say none or full, or render for slurm, whose nodes have the runner", only_ours);
    if (!plan.policy.providers.empty()) // whatever the network: engines read files of env_files themselves, keys included
        demands.add(plan.policy.providers.front().where, "providers", "only the runner keeps their keys outside",
                    "bring the keys with the engine's own secrets (env_files), or render for slurm", only_ours);
    if (network.mode != NetworkMode::listed) return;
    if (std::none_of(network.allowed.begin(), network.allowed.end(), has_loopback)) filtering.insert(RenderTarget::kubernetes);
    demands.add(network.where, "network", "a list of addresses, with this host's loopback or without",
                "take systemd, or kubernetes without the loopback", filtering);
}

void add_projects(const RenderPlan &plan, Demands &demands)
{
    const auto &protect = plan.policy.projects.protect;
    const Position protecting = protect && !protect->empty() ? protect->front().where : file_of(plan);
    for (const auto &link : plan.links)
        demands.add(protecting, "projects.protect", quote(link) + " is a symlink, which the engine would follow as root",
                    "put in its place what it leads to", only_ours);
    for (const auto &path : plan.missing)
        demands.add(path.where, "projects.protect", quote(path.path) + " does not exist, and only the runner keeps it from being made",
                    "its user creates it, or you take it out of the list", only_ours);
    for (const auto &path : plan.mounts)
        demands.add(plan.rules.where, plan.rules.entry + ".roots",
                    "a file system is mounted at " + quote(path) + ", and the agent would be shown what that covers", "unmount it",
                    in_cluster);
    for (const auto &mask : plan.policy.projects.mask)
        demands.add(mask.where, "projects.mask", quote(mask.path) + " is looked for at each start, by the runner",
                    "keep such files out of the project", only_ours);
    if (plan.policy.projects.read_only)
        demands.add(place_of_value(plan, "projects.read_only"), "projects.read_only",
                    "only the runner keeps the project from being changed", "render for a directory that is not read-only", only_ours);
    for (const auto &path : plan.beside)
        demands.add(plan.rules.where, plan.rules.entry + ".roots",
                    "the repository has its git directory elsewhere, at " + escape_for_display(path), "render for its main working tree",
                    only_ours);
}

void add_view(const RenderPlan &plan, Demands &demands)
{
    const auto &policy = plan.policy;
    if (policy.view == View::host)
        demands.add(file_of(plan), "view", "all of this host's /etc", "say minimal, and bring files with the image", by_systemd);
    for (const auto &path : policy.view_paths)
        demands.add(path.where, "view_paths", quote(path.path) + " is this host's", "bring it with the image", on_this_host);
    for (const auto &path : policy.devices)
        demands.add(path.where, "devices", quote(path.path) + " is this host's", "give it to the container yourself, or leave it out",
                    only_ours);
    const auto own = policy.rules.own_readable.value_or(std::vector<PolicyPath>()); // which is among the others, too
    const auto key_that_says = [&](const PolicyPath &path, const std::string &otherwise) {
        const bool is_own = std::any_of(own.begin(), own.end(), [&](const PolicyPath &one) { return one.path == path.path; });
        return is_own ? policy.rules.places.at("readable").key : otherwise;
    };
    const auto add_list = [&](const HomeDirectories &directories, const std::string &key, const std::string &what) {
        for (const auto &path : directories.paths)
            if (path.where.line > 0)
                demands.add(path.where, key_that_says(path, key), quote("~/" + path.path) + " " + what,
                            "leave it out, or bring it with the image", only_ours);
    };
    add_list(policy.toolchains.readable, "toolchains.readable", "belongs to the user, whose home nobody else opens");
    add_list(policy.toolchains.caches, "toolchains.caches", "would have to be copied for each session");
    for (const auto &[key, name] : {std::pair(&plan.rules.ssh_key, ".ssh.key"), std::pair(&plan.rules.signing_key, ".signing.key")})
        if (*key)
            demands.add(plan.rules.where, plan.rules.entry + name, "the key belongs to the user, whose home nobody else opens",
                        "leave it out", only_ours);
}

void add_agent(const RenderPlan &plan, Demands &demands)
{
    const auto &agent = plan.policy.agent;
    if (split_last(agent.binary).second != agent.binary_name)
        demands.add(agent.where, "agent.binary_name", "a container calls the program " + escape_for_display(agent.binary),
                    "leave it out, or name the program so", by_systemd);
    if (!plan.policy.wrapper.clipboard)
        demands.add(plan.policy.wrapper.where, "wrapper.clipboard", "only pi takes that out of what the agent writes to a terminal",
                    "leave it out, or render for an engine without a terminal: systemd or quadlet", without_terminal);
    for (const auto &certificates : plan.certificates) {
        if (certificates.place == CertificatePlace::workspace) continue;
        Targets met_by = certificates.place == CertificatePlace::view_paths ? on_this_host : only_ours;
        if (certificates.place == CertificatePlace::host_view) met_by.insert(RenderTarget::systemd);
        demands.add(certificates.where, certificates.key, certificates.name + " names certificates of this host, which are not shown there",
                    "show them with view_paths; or leave it to the image, if that has them", met_by);
    }
}

void add_limits(const RenderPlan &plan, Demands &demands)
{
    const auto &limits = plan.policy.limits;
    if (limits.memory_share)
        demands.add(limits.memory_share->where, "limits.memory", limits.memory_share->text + " is a share of this host",
                    "say an amount, e.g. 8G", on_this_host);
    if (limits.tasks)
        demands.add(limits.tasks->where, "limits.tasks", "a Job cannot say it; a node can (podPidsLimit of the kubelet)",
                    "leave it out, and set it there", on_this_host);
    if (limits.sessions)
        demands.add(limits.sessions->where, "limits.sessions", "nobody counts a user's sessions there", "leave it out", in_cluster);
    if (limits.disk)
        demands.add(limits.disk->where, "limits.disk", "only the runner puts files under a quota", "leave it out, and limit the volume",
                    only_ours);
}

void add_hardening(const RenderPlan &plan, Demands &demands)
{
    if (plan.policy.tracing == Tracing::always)
        demands.add(file_of(plan), "hardening.tracing", "what debuggers call is not in the profile", "leave it out", by_systemd);
    const auto &calls = plan.policy.calls;
    for (const auto &[key, list] : {std::pair("hardening.deny_system_calls", &calls.denied),
                                    {"hardening.allow_system_calls", &calls.allowed},
                                    {"hardening.address_families", &calls.families}})
        for (const auto &name : *list)
            demands.add(name.where, key, quote(name.path) + " is not in the profile", "leave it out, and change the profile yourself",
                        by_systemd);
}

Position place_of(const EnvironmentPlaces &places, const std::string &name, const Position &otherwise)
{
    const auto found = places.find(name);
    return found == places.end() ? otherwise : found->second;
}

void add_environment(const RenderPlan &plan, Demands &demands)
{
    const auto &policy = plan.policy;
    const std::string remedy = "put it into a file of env_files, which a rendering names and does not quote";
    const auto add_secrets = [&](const Environment &env, const EnvironmentPlaces &places, const std::string &key,
                                 const Position &otherwise) {
        for (const auto &[name, value] : env)
            if (looks_secret(name, value))
                demands.add(place_of(places, name, otherwise), key + "." + name, "it looks like a secret", remedy, only_ours);
    };
    add_secrets(policy.env, policy.env_where, "env", file_of(plan));
    add_secrets(plan.rules.env, plan.rules.env_where, plan.rules.entry + ".env", plan.rules.where);
    for (const auto &where : plan.host_variables)
        demands.add(plan.rules.where, "host_env_files", escape_for_display(where) + " sets variables, and belongs to the user",
                    "move them into a file of env_files", only_ours);
    for (const auto &file : plan.env_files) {
        if (!file.plain)
            demands.add(file.file.where, "env_files", file.file.path + " has quotes or continued lines, which others read otherwise",
                        "write each line as NAME=VALUE", by_systemd);
        for (const auto &name : file.names) // systemd: the file wins, whatever else the unit says
            if (plan.variables.contains(name))
                demands.add(file.file.where, "env_files", file.file.path + " sets " + name + ", and so does a stronger layer",
                            "say it once", in_containers);
    }
}

// A Job has them in a ConfigMap; elsewhere they are in the agent's home already, where the agent can put anything in their place.
void add_documents(const RenderPlan &plan, Demands &demands)
{
    if (plan.policy.settings_lock)
        demands.add(file_of(plan), "settings_lock", "root would mount over a name in the agent's own home",
                    "leave it out, or take kubernetes", in_cluster);
    std::set<std::string> variables;
    for (const auto &file : plan.env_files)
        variables.insert(file.names.begin(), file.names.end());
    for (const auto &[file, text] : plan.policy.documents)
        if (const auto secret = secret_in_document(text, key_of_document(file), variables); !secret.empty())
            demands.add(file_of(plan), secret, "it looks like a secret, and settings go into a ConfigMap",
                        "write the name of a variable of env_files there", on_this_host);
    for (const auto &[path, file_class] : plan.policy.config_classes.rules())
        if (is_copied(file_class))
            demands.add(file_of(plan), "config.classes." + path, "nobody copies the user's config directory there",
                        "leave it out, or put the file into the workspace", on_this_host);
}

// A rendering is shown on root's terminal, and a shell's quotes keep no control character from it.
void require_printable(const std::string &path)
{
    if (escape_for_display(path) == path) return;
    throw Failure(ExitStatus::unavailable, "the name " + escape_for_display(path) + " cannot be written down for an engine; rename it");
}

// Such a name is neither quoted nor divided anywhere.
void require_harmless(const std::string &path)
{
    if (is_property_safe(path) && path.find(':') == std::string::npos) return;
    throw Failure(ExitStatus::unavailable,
                  "the name " + escape_for_display(path) +
                      " cannot be written down for an engine; rename it to use only letters, digits and / _ . = @ -");
}

} // namespace

const char *to_string(RenderTarget target)
{
    constexpr const char *names[] = {"kubernetes", "podman", "quadlet", "systemd", "slurm"};
    return names[static_cast<int>(target)];
}

void require_honoured(RenderTarget target, const RenderPlan &plan)
{
    Demands demands{target};
    for (const auto add : {add_network, add_projects, add_agent, add_view, add_limits, add_environment, add_documents, add_hardening})
        add(plan, demands);
    demands.problems.throw_if_any();
    if (target == RenderTarget::slurm) return require_printable(plan.started); // quoted for a shell
    for (const auto &path : {plan.directory, plan.policy.agent.binary})
        require_harmless(path);
    for (const auto &file : plan.env_files)
        require_harmless(file.file.path);
    for (const auto &mount : mounts_of(plan)) {
        require_harmless(mount.source);
        require_harmless(mount.target);
    }
}

} // namespace pi_agent
