// The table of the policy's keys, what levels may say them, and what pages say of them.
#include "common/policy/policy_keys.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/text.hpp"
#include "common/policy/policy.hpp"

#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pi_agent {

// The table of the policy's keys, and looking things up in it.

namespace {

using Form = ValueForm;

// The columns are in the order of PolicyKey. read_section compares the reader of a section with its entries here. The table is made when
// something first asks for it, because other static objects may ask before.
const auto &table()
{
    static const std::vector<PolicyKey> keys = with_levels(std::vector<PolicyKey>{
        {"version", Form::version, "", "1", "The version of the policy language. Files in `policy.d` may leave it out.", "", "", true},
        {"agent", Form::section, "", "{accounts: per-user}", "The agent's program, and the accounts that agents run as."},
        {"agent.binary", Form::line, "/usr/lib/pi-agent/agent/bin/pi", "/opt/pi/bin/pi",
         "Absolute path of the agent's program. `apply` closes its directory to everybody but agents."},
        {"agent.user", Form::name, "pi-agent", "coder",
         "The account that agents run as. Where `agent.accounts` is `per-user`, it is the beginning of each account's name, such as "
         "pi-agent-alice."},
        {"agent.group", Form::name, "pi-agent", "coders",
         "The group of the agents' accounts, with no people in it. Where `apply` closes the agent's program, this group may run it."},
        {"agent.accounts", Form::choice, "", "per-user",
         "`per-user`: the agent of each user has an account of its own. `shared`: all agents run as one account and can reach each other's "
         "state. Required if more than one user is possible. A single user's agent runs as `agent.user`.",
         "shared per-user"},
        {"agent.create_user", Form::boolean, "true", "false", "Whether `apply` creates missing accounts."},
        {"agent.binary_name", Form::name, "pi", "pi", "The name that the agent sees as its own (its first argument)."},
        {"agent.state_dir", Form::line, default_state_dir, "/srv/agents",
         "Where the agents' homes are. Only root may be able to change its parents, and none is a symlink. After a change, "
         "`pi-agentctl state move` moves the homes.",
         "", "concepts/home.md"},
        {"wrapper", Form::section, "", "{enable: false}", "The command that users type."},
        {"wrapper.enable", Form::boolean, "true", "false",
         "`false` is the emergency stop: nobody can start the agent, and `apply` ends all sessions."},
        {"wrapper.command_name", Form::name, build::command_name, "agent",
         "The name of the command that users type. `apply` puts another name beside `pi`, which stays.", "", "reference/apply.md"},
        {"wrapper.hide_direct_binary", Form::boolean, "true", "false",
         "Whether `apply` keeps people from starting the agent's program without its sandbox."},
        {"wrapper.clipboard", Form::boolean, "true", "false",
         "Whether the agent can use the clipboard of its user's terminal (OSC 52), as its `/copy` does. `false` takes that out of what it "
         "shows."},
        {"sandbox", Form::section, "", "{method: systemd}", "What confines the agent.", "", "platforms/methods.md"},
        {"sandbox.method", Form::choice, "systemd", "bwrap",
         "What confines the agent: a hardened unit of systemd; bubblewrap, for hosts without systemd as process 1; a container of root's "
         "podman or docker; or nothing but an account of its own. pi-agent never uses another method in its place.",
         "systemd bwrap podman docker none"},
        {"sandbox.image", Form::line, "", "debian:12",
         "An image on this host. The method `docker` requires one, `podman` takes one, and no other method does. Only its root directory "
         "is used. Programs, libraries and everything else come from the host, and the image runs no program.",
         "", "platforms/docker.md"},
        {"users", Form::names, "", "{alice: {roots: [~/projects]}}",
         "The users who may start the agent, and where: accounts, and groups as `\"%group\"`. A user's own entry decides their roots, "
         "config, run_as and keys; without one, their groups' do together. What else holds for sessions comes from the groups, and the own "
         "entry wins over them.",
         "", "concepts/levels.md"},
        {"users.*", Form::section, "", "{roots: [~/projects]}", "One account, or the members of one group."},
        {"users.*.roots", Form::roots, "", "[~/projects, /srv/shared/app]",
         "Directories in which they may start the agent, with everything below. `~` is their home. A home itself cannot be a root, nor can "
         "what holds credentials (`~/.ssh`, `~/.config` and others). A mapping with `path` says what else holds in that directory.",
         "", "concepts/projects.md", true, 1},
        {"users.*.roots.*", Form::section, "", "{path: ~/projects, network: none}",
         "One of these directories, with what holds for sessions in it.", "", "concepts/levels.md"},
        {"users.*.roots.*.path", Form::line, "", "~/projects", "The directory itself.", "", "", true},
        {"users.*.readable", Form::list, "[]", "[~/datasets]",
         "Directories of their homes that their sessions see, read-only, besides the project.", "", "concepts/levels.md"},
        {"users.*.config", Form::line, ".pi/agent", ".config/pi",
         "Their directory with the agent's configuration, absolute or relative to their home. It cannot be what holds credentials "
         "(`~/.ssh`).",
         "", "concepts/config-sync.md"},
        {"users.*.run_as", Form::name, "", "pi-agent-team",
         "The account that their agents run as, instead of the one that `agent.user` and `agent.accounts` name."},
        {"users.*.ssh", Form::section, "", "{key: .ssh/id_agent}", "A key for the agent's git.", "", "cookbook/git.md"},
        {"users.*.ssh.key", Form::line, "", ".ssh/id_agent",
         "A key for the agent's git, absolute or relative to their home. The agent gets a copy, and the model can read it."},
        {"users.*.signing", Form::section, "", "{key: .ssh/id_signing}", "A key that signs the agent's commits.", "",
         "concepts/git-identity.md"},
        {"users.*.signing.key", Form::line, "", ".ssh/id_signing",
         "An ssh key that signs the agent's commits, absolute or relative to their home. The agent gets a copy, and the model can sign "
         "anything with it."},
        {"users.*.env", Form::names, "", "{EDITOR: nano}",
         "Variables for their agents. They win over `env`. Everybody on the host can read the policy, so put no secrets here."},
        {"users.*.env.*", Form::text, "", "nano", "The value of one variable."},
        {"projects", Form::section, "", "{scope: project}", "What of a user's projects a session sees.", "", "concepts/projects.md"},
        {"projects.paths", Form::choice, "host", "alias",
         "Where the project is in a session. `host`: at its path on the host. `alias`: below `~/projects` of the agent's home, so that no "
         "path names the user's home.",
         "host alias"},
        {"projects.scope", Form::choice, "root", "project",
         "What a session sees: the whole root that holds the working directory, or only the repository that does.", "root project"},
        {"projects.ownership", Form::choice, "idmap", "none",
         "Whose the files of a project are. `idmap`: what the agent makes belongs to the user, and it has the user's access there. `none`: "
         "what it makes belongs to its own account, which needs access of its own.",
         "idmap none", "concepts/ownership.md"},
        {"projects.protect", Form::choice_or_list, "default", "[.git/hooks, Makefile]",
         "What is read-only in a repository: what git executes (`default`), or these paths, relative to the repository. `[]` is nothing.",
         "default"},
        {"projects.mask", Form::list, "[]", "['.env*', deploy/keys]",
         "What a session cannot read: patterns of names anywhere in the project, or of paths where they have a `/`: from the root, and "
         "from the repository where a session shows that alone. No session starts in what is masked."},
        {"projects.aftermath", Form::boolean, "true", "false",
         "Whether `pi` lists at the end what the session left that runs code outside the sandbox."},
        {"projects.read_only", Form::boolean, "false", "true", "Whether a session can only read the project, and change nothing in it."},
        {"config", Form::section, "", "{classes: {sessions: never}}", "What of the user's config directory the agent gets.", "",
         "concepts/config-sync.md"},
        {"config.classes", Form::names, "", "{extensions/experimental: never}",
         "To whom a path of the config directory belongs, with everything below it."},
        {"config.classes.*", Form::choice, "", "never",
         "`mirror`: the user's, copied at every start. `seed`: copied when the agent lacks it, or the user's has changed. `once`: copied "
         "until the agent changes something in it. `agent`: the agent's own. `never`: stays outside.",
         "mirror seed once agent never"},
        {"settings", Form::document, "{}", "{defaultProvider: local}", "Merged over everybody's settings.json. What is written here wins.",
         "", "concepts/config-sync.md"},
        {"models", Form::document, "{}", "{providers: {}}",
         "Merged over everybody's models.json. Everybody on the host can read the policy, so write names of variables here, not keys.", "",
         "concepts/config-sync.md"},
        {"keybindings", Form::document, "{}", "{app.exit: ctrl+q}", "Merged over everybody's keybindings.json.", "",
         "concepts/config-sync.md"},
        {"mcp", Form::document, "{}", "{mcpServers: {}}", "Merged over everybody's mcp.json.", "", "concepts/config-sync.md"},
        {"settings_lock", Form::boolean, "false", "true",
         "Whether the agent's settings.json is read-only in a session. `/settings` then keeps nothing.", "", "concepts/config-sync.md"},
        {"git_identity", Form::boolean, "true", "false", "Whether the agent's git has the user's name, address and settings.", "",
         "concepts/git-identity.md"},
        {"box_notes", Form::boolean, "true", "false", "Whether the agent is told about its sandbox.", "", "concepts/agent-notes.md"},
        {"env", Form::names, "{}", "{PI_OFFLINE: '1'}",
         "Variables for every agent. Everybody on the host can read the policy, so put no secrets here.", "", "concepts/environment.md"},
        {"env.*", Form::text, "", "'1'", "The value of one variable. Numbers and booleans need quotes."},
        {"env_files", Form::list, "[]", "[/etc/pi-agent/env]",
         "Absolute paths of files with more variables for every agent, which only root can read. Secrets belong here.", "",
         "concepts/environment.md"},
        {"host_env_files", Form::list, "[.pi/agent/env]", "[]",
         "Files with the user's own variables, absolute or relative to their home. All that the policy sets wins over them.", "",
         "concepts/environment.md"},
        {"network", Form::network, "full", "{hosts: [github.com, '*.example.org']}",
         "What a session reaches. `full`: all that the host reaches. `loopback`: the host's loopback alone. `none`: nothing but a loopback "
         "of its own. A list: exactly these ranges of addresses. A mapping: the hosts that it names.",
         "full loopback none", "concepts/network.md", false, 1},
        {"network.hosts", Form::list, "", "[github.com, '*.example.org', github.com:22]",
         "The hosts that a session reaches, and nothing else: names, `*.` with a name for all below it, or addresses. Each with its port, "
         "unless it is 443.",
         "", "concepts/hosts.md"},
        {"network.may_grant", Form::list, "", "['*.debian.org:80']",
         "The hosts that a user may add for one session (`pi --pi-agent-allow HOST`). Without the key, users can add no host.", "",
         "concepts/hosts.md"},
        {"providers", Form::names, "", "{anthropic: {key_file: /etc/pi-agent/anthropic.key}}",
         "Providers of models whose keys no session has: a process outside puts them into the agent's requests. It does so with hosts in "
         "`network`, which need not name theirs. With `none` the keys stay outside, too.",
         "", "concepts/keys.md"},
        {"providers.*", Form::section, "", "{key_file: /etc/pi-agent/anthropic.key}",
         "One provider, as pi calls it: `anthropic`, `openai`, `google`, `openrouter`, `azure-openai-responses` or `amazon-bedrock`."},
        {"providers.*.key_file", Form::line, "", "/etc/pi-agent/anthropic.key",
         "Absolute path of a file that has the key alone, and that only root can read.", "", "", true},
        {"providers.*.host", Form::line, "", "bedrock-runtime.eu-central-1.amazonaws.com",
         "The host to which the key goes, where the provider has several. Required for `azure-openai-responses`: `NAME.openai.azure.com`."},
        {"toolchains", Form::section, "", "{caches: []}", "What else of the users' homes a session sees.", "", "concepts/toolchains.md"},
        {"toolchains.readable", Form::choice_or_list, "default", "[default, ~/.sdkman]",
         "Directories of the users' homes with programs, read-only in a session. `best_effort`, alone or in the list, leaves out what "
         "cannot be shown.",
         "default best_effort"},
        {"toolchains.caches", Form::choice_or_list, "default", "[]",
         "Directories of the users' homes with downloads. What a session changes there ends with it. `best_effort` as for "
         "`toolchains.readable`.",
         "default best_effort"},
        {"view", Form::choice, "minimal", "host",
         "What a session sees of the host: programs and a little of /etc, or all of /etc that is readable.", "minimal host",
         "concepts/view.md"},
        {"view_paths", Form::list, "[]", "[/srv/toolchains]",
         "Absolute paths that a session also sees, read-only. Only root may be able to write there.", "", "concepts/view.md"},
        {"path", Form::list, "[]", "[/usr/local/go/bin, /opt/tool/bin]",
         "Directories that come before the host's own in the agents' PATH: absolute paths of what a session sees (`/usr`, `/opt`, "
         "`view_paths`), which only root can change.",
         "", "concepts/environment.md"},
        {"devices", Form::list, "[]", "[/dev/dri, /dev/kvm, nvidia]",
         "Device nodes below /dev, or directories of them, that sessions may read and write. `nvidia` is all devices of that driver. Only "
         "the method `systemd` can show them.",
         "", "cookbook/devices.md"},
        {"scratch", Form::choice, "disk", "tmpfs", "Where the temporary directory of a session is: on disk, or in memory.", "disk tmpfs",
         "concepts/scratch.md"},
        {"limits", Form::section, "", "{memory: 8G}", "What a session may take of the host.", "", "concepts/limits.md"},
        {"limits.memory", Form::amount, "80%", "8G",
         "Memory of a session: a number with K, M, G or T, powers of 1024, or a share of the host's. At least 128M.", "K M G T %"},
        {"limits.tasks", Form::count, "4096", "2000", "Processes and threads of a session, 32 to 4194304."},
        {"limits.cpu", Form::amount, "", "400%", "Percent of one processor: 400% is four. Without it there is no limit.", "%"},
        {"limits.runtime", Form::amount, "", "12h", "How long a session may last, 10s to 365d. Without it there is no limit.", "s m h d"},
        {"limits.files", Form::count, "", "8192",
         "Files that each process of a session may have open, 256 to 1048576. Without it, as many as the user's own programs."},
        {"limits.sessions", Form::count, "8", "2", "Sessions that one user may have at once, 1 to 64."},
        {"limits.disk", Form::amount, "", "10G",
         "Disk space of one user's agent, its home and the temporary files of its sessions together: a number with K, M, G or T, powers of "
         "1024, at least 64M. A project quota of the file system holds the agent to it (ext4, XFS). Without it there is no limit.",
         "K M G T"},
        {"limits.disk_without_quota", Form::choice, "tell", "refuse",
         "What a start does where no quota can hold the agent to `limits.disk`. `tell`: it says so, and goes on. `refuse`: no session "
         "starts.",
         "tell refuse"},
        {"placement", Form::section, "", "{engine: slurm, partition: interactive}", "Where sessions run.", "", "platforms/slurm.md"},
        {"placement.engine", Form::choice, "none", "slurm",
         "Where sessions run. `none`: on the host where `pi` is typed. `slurm`: on a node of its Slurm cluster, in a job of their own. No "
         "session starts outside of a job then.",
         "none slurm"},
        {"placement.srun", Form::line, "/usr/bin/srun", "/opt/slurm/bin/srun", "Absolute path of the program that asks for a job."},
        {"placement.partition", Form::line, "", "interactive", "The partition of the job. Without it, the cluster's default."},
        {"placement.account", Form::line, "", "research", "The account that the job is charged to. Without it, the user's default."},
        {"placement.qos", Form::line, "", "interactive", "The quality of service of the job. Without it, the cluster's default."},
        {"placement.constraint", Form::line, "", "'agents&ssd'", "Features that the node must have. Without it, any node will do."},
        {"hardening", Form::section, "", "{tracing: never}", "What else a session may do.", "", "platforms/kernels.md"},
        {"hardening.tracing", Form::choice, "auto", "never",
         "Whether debuggers (gdb, strace, LeakSanitizer) work in a session, on its own processes alone. `auto`: where Landlock or process "
         "numbers of its own keep them there.",
         "auto always never"},
        {"hardening.deny_system_calls", Form::list, "[]", "['@memlock', memfd_create]",
         "System calls that fail in sessions (EPERM), besides those that always do: names, and groups of systemd's such as `@memlock`.", "",
         "reference/session-calls.md"},
        {"hardening.allow_system_calls", Form::list, "[]", "[personality]",
         "System calls that work in sessions though they fail otherwise: some of `mincore`, `name_to_handle_at`, `personality`, "
         "`pkey_alloc`, `pkey_free`, `pkey_mprotect`.",
         "", "reference/session-calls.md"},
        {"hardening.address_families", Form::list, "[unix, inet, inet6, netlink]", "[unix, inet]",
         "Kinds of sockets that sessions may make: some of `unix`, `inet`, `inet6`, `netlink`. Without `netlink`, programs cannot ask for "
         "interfaces and routes.",
         "", "reference/session-calls.md", false, 1},
    });
    return keys;
}

std::string_view parent_of_key(std::string_view path) noexcept
{
    const auto dot = path.rfind('.');
    return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

// By their parent: each entry of a policy is looked up, and a policy may have a hundred thousand.
const auto &keys_by_parent()
{
    static const auto sorted = [] {
        std::map<std::string_view, std::vector<const PolicyKey *>> keys;
        for (const auto &key : table())
            keys[parent_of_key(key.path)].push_back(&key);
        return keys;
    }();
    return sorted;
}

} // namespace

std::span<const PolicyKey> policy_keys() noexcept
{
    return table();
}

std::vector<const PolicyKey *> policy_keys_below(std::string_view path)
{
    const auto found = keys_by_parent().find(path);
    return found == keys_by_parent().end() ? std::vector<const PolicyKey *>() : found->second;
}

const PolicyKey *find_policy_key(std::string_view path, std::string_view name)
{
    const auto below = keys_by_parent().find(path);
    if (below == keys_by_parent().end()) return nullptr;
    const auto found = std::find_if(below->second.begin(), below->second.end(),
                                    [&](const PolicyKey *key) { return last_part(*key) == name || last_part(*key) == "*"; });
    return found == below->second.end() ? nullptr : *found;
}

std::vector<const PolicyKey *> policy_keys_repeating(const PolicyKey &key)
{
    std::vector<const PolicyKey *> keys;
    for (const auto &other : table())
        if (other.repeats == key.path) keys.push_back(&other);
    return keys;
}

std::string_view last_part(const PolicyKey &key) noexcept
{
    return key.path.substr(key.path.rfind('.') + 1); // npos + 1 is 0
}

// Which keys of the whole policy users and roots may say for their own sessions: the one list behind parser, schema and pages.

namespace {

// At the level of a user or group, by the same name; each with all keys below it, except those of `never_below`.
constexpr std::string_view of_users = "network providers limits projects settings models keybindings mcp settings_lock env_files "
                                      "toolchains view_paths path devices scratch placement";
constexpr std::string_view never_below = "projects.ownership placement.srun";

// At the level of a root, where `projects` is what it is about; each with all keys below it.
struct OfRoot {
    std::string_view name;
    std::string_view repeats;
};
constexpr OfRoot of_roots[] = {{"network", "network"},
                               {"scope", "projects.scope"},
                               {"protect", "projects.protect"},
                               {"mask", "projects.mask"},
                               {"read_only", "projects.read_only"}};

bool is_of_users(std::string_view path)
{
    return has_word(of_users, path.substr(0, path.find('.'))) && !has_word(never_below, path);
}

// The table refers to texts, and these are nobody else's.
std::string_view keep(std::string text)
{
    static std::deque<std::string> texts;
    return texts.emplace_back(std::move(text));
}

// Without a default: what is not said is for the level around it.
PolicyKey at_level(const PolicyKey &key, std::string path, const char *whose)
{
    PolicyKey repeated = key;
    repeated.path = keep(std::move(path));
    repeated.standard = {};
    repeated.repeats = key.path;
    const char *relation = key.form == ValueForm::document ? "merged over" : "instead of"; // common/policy/policy_levels.hpp
    repeated.meaning = keep(fmt::format("`{}` for {}, {} what holds for others.", key.path, whose, relation));
    repeated.page = "concepts/levels.md";
    return repeated;
}

} // namespace

std::vector<PolicyKey> with_levels(std::span<const PolicyKey> keys)
{
    std::vector<PolicyKey> all(keys.begin(), keys.end());
    for (const auto &key : keys)
        if (is_of_users(key.path)) all.push_back(at_level(key, fmt::format("users.*.{}", key.path), "the sessions of this user or group"));
    for (const auto &[name, repeats] : of_roots)
        for (const auto &key : keys)
            if (key.path == repeats || key.path.starts_with(fmt::format("{}.", repeats)))
                all.push_back(at_level(key, fmt::format("users.*.roots.*.{}{}", name, key.path.substr(repeats.size())),
                                       "sessions in this directory"));
    return all;
}

// What the pages and the schema say of a policy's key: its path, its form, and the levels that repeat it.

namespace {

std::string words(std::string_view list)
{
    std::vector<std::string> quoted;
    for (const auto word : split(list, ' '))
        quoted.push_back(fmt::format("`{}`", word));
    return fmt::format("{}", fmt::join(quoted, ", "));
}

} // namespace

std::string display_path(const PolicyKey &key)
{
    std::string text(key.path);
    if (const auto root = text.find(".roots.*"); root != std::string::npos) text.replace(root, 8, ".roots[N]");
    for (auto star = text.find('*'); star != std::string::npos; star = text.find('*'))
        text.replace(star, 1, "NAME");
    return text;
}

std::string levels_text(const PolicyKey &key)
{
    std::vector<std::string> others;
    for (const auto *other : policy_keys_repeating(key))
        others.push_back(fmt::format("`{}`", display_path(*other)));
    return others.empty() ? "" : fmt::format("Also {}.", fmt::join(others, " and "));
}

std::string form_text(const PolicyKey &key)
{
    switch (key.form) {
    case ValueForm::version:
        return fmt::format("the number {}", policy_version);
    case ValueForm::section:
        return "a mapping";
    case ValueForm::names:
        return "a mapping of names";
    case ValueForm::document:
        return "a mapping, as JSON";
    case ValueForm::boolean:
        return "`true`, `false`";
    case ValueForm::text:
    case ValueForm::line:
        return "text";
    case ValueForm::name:
        return "a name";
    case ValueForm::choice:
        return words(key.choices);
    case ValueForm::list:
        return "a list";
    case ValueForm::roots:
        return "a list, also of mappings";
    case ValueForm::choice_or_list:
        return words(key.choices) + ", or a list";
    case ValueForm::network:
        return words(key.choices) + ", a list, or a mapping";
    case ValueForm::amount:
        return "a whole number with " + words(key.choices);
    case ValueForm::count:
        return "a whole number";
    }
    return "";
}

} // namespace pi_agent
