// The table of tasks, and whose each key is.
#include "common/policy/policy_keys.hpp"

#include "common/base/text.hpp"

namespace pi_agent {

namespace {

constexpr PolicyTask task_table[] = {
    {"Users, groups and their directories", "version users",
     "users:\n"
     "  alice:\n"
     "    roots: [~/projects, /srv/shared/app]\n"
     "  \"%devs\":\n"
     "    roots: [/srv/devs]\n"
     "    network: [10.20.0.0/16]                  # for the sessions of this group\n"
     "  bob:\n"
     "    roots: [~/projects, {path: ~/untrusted, network: none}]\n"
     "agent: {accounts: per-user}\n"},
    {"The agent and its accounts", "agent users.*.run_as",
     "agent:\n"
     "  binary: /opt/pi/bin/pi\n"
     "  accounts: per-user        # pi-agent-alice, pi-agent-bob\n"},
    {"The command, and the emergency stop", "wrapper", "wrapper: {enable: false}    # then run: pi-agentctl apply\n"},
    {"What confines a session", "sandbox hardening",
     "sandbox: {method: bwrap}    # a container, for example\n"
     "hardening:\n"
     "  tracing: never\n"
     "  deny_system_calls: ['@memlock', memfd_create]\n"},
    {"What a session sees of a project", "projects",
     "projects:\n"
     "  scope: project            # the repository alone, not the whole root\n"
     "  mask: ['.env*', deploy/keys]\n"},
    {"What a session sees of the host and of homes", "view view_paths path devices toolchains users.*.readable",
     "view_paths: [/srv/toolchains]\n"
     "path: [/srv/toolchains/bin]\n"
     "toolchains: {caches: []}    # no caches from homes\n"},
    {"The network, and keys that no session has", "network providers",
     "network: {hosts: [github.com, 'github.com:22', '*.example.org']}   # these and no others\n"
     "providers: {anthropic: {key_file: /etc/pi-agent/anthropic.key}}    # a file that only root can read\n"},
    {"Limits and temporary files", "limits scratch", "limits: {memory: 8G, cpu: 400%, runtime: 12h, sessions: 2}\n"},
    {"A cluster", "placement", "placement: {engine: slurm, partition: interactive}    # pi on a login node runs the session on a node\n"},
    {"The agent's configuration", "config settings models keybindings mcp settings_lock box_notes users.*.config",
     "settings: {defaultProvider: local}\n"
     "settings_lock: true\n"
     "config: {classes: {sessions: never}}\n"},
    {"Variables and API keys", "env env_files host_env_files users.*.env",
     "env: {PI_OFFLINE: '1'}\n"
     "env_files: [/etc/pi-agent/env]    # NAME=value, which only root can read\n"},
    {"Git", "git_identity users.*.ssh users.*.signing",
     "users:\n"
     "  alice:\n"
     "    roots: [~/projects]\n"
     "    ssh: {key: .ssh/id_agent}\n"
     "    signing: {key: .ssh/id_signing}\n"},
};

bool is_below(std::string_view path, std::string_view top)
{
    return path.substr(0, top.size()) == top && (path.size() == top.size() || path[top.size()] == '.');
}

// How much of the key's path the task names. The task that names most has the key.
std::size_t part_named(const PolicyTask &task, std::string_view path)
{
    std::size_t most = 0;
    for (const auto top : split(task.keys, ' '))
        if (is_below(path, top) && top.size() > most) most = top.size();
    return most;
}

const PolicyTask *task_of(std::string_view path)
{
    const PolicyTask *found = nullptr;
    std::size_t most = 0;
    for (const auto &task : task_table)
        if (const auto part = part_named(task, path); part > most) {
            most = part;
            found = &task;
        }
    return found;
}

} // namespace

std::span<const PolicyTask> policy_tasks() noexcept
{
    return task_table;
}

std::vector<const PolicyKey *> policy_keys_of(const PolicyTask &task)
{
    std::vector<const PolicyKey *> keys;
    for (const auto &key : policy_keys())
        if (key.repeats.empty() && task_of(key.path) == &task) keys.push_back(&key);
    return keys;
}

} // namespace pi_agent
