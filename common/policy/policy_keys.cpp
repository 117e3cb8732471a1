// The table of the policy's keys, and looking things up in it.
#include "common/policy/policy_keys.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

namespace pi_agent {

namespace {

using Form = ValueForm;

// The columns are in the order of PolicyKey. What reads a section is held against its entries here (read_section).
// Made when it is first asked for: what else is made at the beginning of a program may ask.
const auto &table()
{
    static const PolicyKey keys[] = {
        {"version", Form::version, "", "1", "The version of the policy language. Files in policy.d may leave it out.", "", "", "", true},
        {"agent", Form::section, "", "{accounts: per-user}", "The agent, and the accounts it runs as."},
        {"agent.binary", Form::line, "/usr/lib/pi-agent/agent/bin/pi", "/opt/pi/bin/pi",
         "The agent's program, an absolute path. `apply` closes its directory to everybody but agents."},
        {"agent.user", Form::name, "pi-agent", "coder",
         "The account that agents run as; with `accounts: per-user` the beginning of each account's name: pi-agent-alice."},
        {"agent.group", Form::name, "pi-agent", "coders", "The group that may reach the agent's program. Agents are in it, and no people."},
        {"agent.accounts", Form::choice, "", "per-user",
         "Whether every user's agent has an account of its own, or all share one and can reach each other's state. To be said wherever "
         "more than one user is possible; a single user has `agent.user`.",
         "shared per-user"},
        {"agent.create_user", Form::boolean, "true", "false", "Whether `apply` creates the accounts that are missing."},
        {"agent.binary_name", Form::name, "pi", "pi", "What the agent finds as its own name (its first argument)."},
        {"agent.state_dir", Form::fixed, "/var/lib/pi-agent", "/var/lib/pi-agent",
         "Where the homes of agents lie. Another value is not supported yet."},
        {"wrapper", Form::section, "", "{enable: false}", "The command that people start."},
        {"wrapper.enable", Form::boolean, "true", "false",
         "`false` is the emergency stop: nobody can start the agent, and `apply` ends all sessions."},
        {"wrapper.command_name", Form::fixed, build::command_name, build::command_name,
         "The name of the command. Another value is not supported yet."},
        {"wrapper.hide_direct_binary", Form::boolean, "true", "false",
         "Whether `apply` keeps people from starting the agent's program without its sandbox."},
        {"wrapper.clipboard", Form::boolean, "true", "false",
         "Whether the agent reaches the clipboard of its user's terminal (OSC 52), as its `/copy` does. `false` takes that out of what it "
         "shows."},
        {"sandbox", Form::section, "", "{method: systemd}", "What confines the agent.", "", "", "methods.md"},
        {"sandbox.method", Form::choice, "systemd", "bwrap",
         "A hardened unit of systemd; bubblewrap, for hosts where systemd is not the first process; a container of root's podman or "
         "docker; or an account of its own and nothing else. No method is ever used in the place of another.",
         "systemd bwrap podman docker none"},
        {"sandbox.image", Form::line, "", "debian:12",
         "For the method docker, which needs one: an image that is on this host. Only its root directory is used: programs, libraries and "
         "all else are the host's, and nothing of it runs.",
         "", "", "methods.md"},
        {"users", Form::names, "", "{alice: {roots: [~/projects]}}",
         "Who may start the agent, and where: accounts, and groups as `\"%group\"`. Somebody's own entry beats those of their groups; "
         "without one, the entries of all their groups are joined."},
        {"users.*", Form::section, "", "{roots: [~/projects]}", "One account, or the members of one group."},
        {"users.*.roots", Form::list, "", "[~/projects, /srv/shared/app]",
         "Directories in which they may start the agent, with everything below them. `~` is their home; a home itself cannot be one, nor "
         "what holds credentials (`~/.ssh`, `~/.config` and their like).",
         "", "", "projects.md", true, 1},
        {"users.*.config", Form::line, ".pi/agent", ".config/pi",
         "Their directory with the agent's configuration: absolute, or relative to their home.", "", "", "config-sync.md"},
        {"users.*.run_as", Form::name, "", "pi-agent-team",
         "The account that their agents run as, in the place of the one that `agent` says."},
        {"users.*.ssh", Form::section, "", "{key: .ssh/id_agent}", "A key for the agent's git.", "", "", "projects.md"},
        {"users.*.ssh.key", Form::line, "", ".ssh/id_agent",
         "A file of theirs, absolute or relative to their home. The agent gets a copy, and the model can read it."},
        {"users.*.signing", Form::section, "", "{key: .ssh/id_signing}", "A key that signs the agent's commits.", "", "", "agent-notes.md"},
        {"users.*.signing.key", Form::line, "", ".ssh/id_signing",
         "An ssh key of theirs, absolute or relative to their home. The agent gets a copy, and the model can sign anything with it."},
        {"users.*.env", Form::names, "", "{EDITOR: nano}", "Variables for their agents, over those of `env`."},
        {"users.*.env.*", Form::text, "", "nano", "The value of one variable."},
        {"projects", Form::section, "", "{scope: project}", "What of a user's projects a session shows.", "", "", "projects.md"},
        {"projects.paths", Form::choice, "host", "alias",
         "Where the project lies inside: at its path on the host, or below `~/projects` of the agent's home, without a trace of the "
         "user's.",
         "host alias"},
        {"projects.scope", Form::choice, "root", "project",
         "What is shown: the root that holds the working directory, or only the repository in it that does.", "root project"},
        {"projects.ownership", Form::choice, "idmap", "idmap",
         "How files that the agent makes come to belong to the user: by an id-mapped mount.", "idmap", "none"},
        {"projects.protect", Form::choice_or_list, "default", "[.git/hooks, Makefile]",
         "What of a repository is read-only inside: what git executes (`default`), or these paths, relative to the repository. `[]` is "
         "nothing.",
         "default"},
        {"projects.mask", Form::list, "[]", "['.env*', deploy/keys]",
         "What cannot be read inside: patterns of names anywhere in the project, or with `/` of paths."},
        {"projects.aftermath", Form::boolean, "true", "false",
         "Whether `pi` tells at the end what the session left that runs code outside."},
        {"config", Form::section, "", "{classes: {sessions: never}}", "What of the user's config directory the agent gets.", "", "",
         "config-sync.md"},
        {"config.classes", Form::names, "", "{extensions/experimental: never}",
         "Whose a path of the config directory is, with what lies beneath it."},
        {"config.classes.*", Form::choice, "", "never",
         "`mirror`: the user's, copied at every start. `seed`: copied when there is none or the host's has changed. `once`: copied until "
         "the agent changes something in it. `agent`: the agent's own. `never`: stays outside.",
         "mirror seed once agent never"},
        {"settings", Form::document, "{}", "{defaultProvider: local}", "Merged over everybody's settings.json; what is written here wins.",
         "", "", "config-sync.md"},
        {"models", Form::document, "{}", "{providers: {}}", "The same for models.json.", "", "", "config-sync.md"},
        {"keybindings", Form::document, "{}", "{}", "The same for keybindings.json.", "", "", "config-sync.md"},
        {"mcp", Form::document, "{}", "{mcpServers: {}}", "The same for mcp.json.", "", "", "config-sync.md"},
        {"settings_lock", Form::boolean, "false", "true",
         "Whether the agent's settings.json is read-only inside. `/settings` keeps nothing then.", "", "", "config-sync.md"},
        {"git_identity", Form::boolean, "true", "false", "Whether the agent's git has the user's name, address and settings.", "", "",
         "agent-notes.md"},
        {"box_notes", Form::boolean, "true", "false", "Whether the agent is told about its sandbox.", "", "", "agent-notes.md"},
        {"env", Form::names, "{}", "{PI_OFFLINE: '1'}",
         "Variables for every agent. Everybody on the host can read the policy: no secrets here.", "", "", "environment.md"},
        {"env.*", Form::text, "", "'1'", "The value of one variable; numbers and booleans need quotes."},
        {"env_files", Form::list, "[]", "[/etc/pi-agent/env]",
         "Absolute paths of files with more variables for every agent, which only root can read: the place for secrets.", "", "",
         "environment.md"},
        {"host_env_files", Form::list, "[.pi/agent/env]", "[]",
         "Files with variables of the user's own, below all that the policy sets: absolute, or relative to their home.", "", "",
         "environment.md"},
        {"network", Form::choice_or_list, "full", "[127.0.0.0/8, 10.20.0.0/16]",
         "What a session reaches: all that the host does, the host's loopback alone, nothing but a loopback of its own, or exactly the "
         "ranges of addresses of a list.",
         "full loopback none", "", "network.md", false, 1},
        {"toolchains", Form::section, "", "{caches: []}", "What of the users' homes sessions see besides.", "", "", "toolchains.md"},
        {"toolchains.readable", Form::choice_or_list, "default", "[default, ~/.sdkman]",
         "Directories with programs, read-only inside. With `best_effort`, also as a word of the list, what cannot be shown is left out.",
         "default best_effort"},
        {"toolchains.caches", Form::choice_or_list, "default", "[]",
         "Directories with downloads; what a session changes in them ends with it. `best_effort` as above.", "default best_effort"},
        {"view", Form::choice, "minimal", "host",
         "What sessions see of the host: programs and a little of /etc, or all of /etc that is readable.", "minimal host", "", "view.md"},
        {"view_paths", Form::list, "[]", "[/srv/toolchains]",
         "Absolute paths that are shown besides, read-only; only root may be able to write there.", "", "", "view.md"},
        {"path", Form::list, "[]", "[/usr/local/go/bin, /opt/tool/bin]",
         "Directories that agents' PATH holds before the host's own: absolute paths of what sessions are shown (`/usr`, `/opt`, "
         "`view_paths`), which only root can change.",
         "", "", "environment.md"},
        {"devices", Form::list, "[]", "[/dev/dri, /dev/kvm, nvidia]",
         "Device nodes below /dev, or directories of them, that sessions may read and write; `nvidia`: all of that driver's. For the "
         "method "
         "systemd.",
         "", "", "devices.md"},
        {"scratch", Form::choice, "disk", "tmpfs", "Where the temporary directory of a session lies: on the disk, or in memory.",
         "disk tmpfs", "", "scratch.md"},
        {"limits", Form::section, "", "{memory: 8G}", "What a session may take of the host.", "", "", "limits.md"},
        {"limits.memory", Form::amount, "80%", "8G", "Memory of a session: powers of 1024, or a share of the host's. At least 128M.",
         "K M G T %"},
        {"limits.tasks", Form::count, "4096", "2000", "Processes and threads of a session, 32 to 4194304."},
        {"limits.cpu", Form::amount, "", "400%", "Percent of one processor: 400% is four. No limit where it is not said.", "%"},
        {"limits.runtime", Form::amount, "", "12h", "How long a session may last, 10s to 365d. No limit where it is not said.", "s m h d"},
        {"limits.sessions", Form::count, "8", "2", "Sessions that one user may have at once, 1 to 64."},
        {"hardening", Form::section, "", "{tracing: never}", "What sessions may do beyond a safe minimum, or not even that.", "", "",
         "platforms.md"},
        {"hardening.tracing", Form::choice, "auto", "never",
         "Whether debuggers (gdb, strace, LeakSanitizer) work in a session, on its own processes alone: where Landlock or process numbers "
         "of "
         "its own keep them there, always, or never.",
         "auto always never"},
        {"hardening.deny_system_calls", Form::later, "", "", "Not supported yet."},
        {"hardening.address_families", Form::later, "", "", "Not supported yet."},
    };
    return keys;
}

std::string_view parent_of_key(std::string_view path) noexcept
{
    const auto dot = path.rfind('.');
    return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string words(std::string_view list)
{
    std::vector<std::string> quoted;
    for (const auto word : split(list, ' '))
        quoted.push_back(fmt::format("`{}`", word));
    return fmt::format("{}", fmt::join(quoted, ", "));
}

} // namespace

std::span<const PolicyKey> policy_keys() noexcept
{
    return table();
}

std::vector<const PolicyKey *> policy_keys_below(std::string_view path)
{
    std::vector<const PolicyKey *> keys;
    for (const auto &key : table())
        if (parent_of_key(key.path) == path) keys.push_back(&key);
    return keys;
}

const PolicyKey *find_policy_key(std::string_view path, std::string_view name)
{
    const auto *const found = std::find_if(std::begin(table()), std::end(table()), [&](const PolicyKey &key) {
        return parent_of_key(key.path) == path && (last_part(key) == name || last_part(key) == "*");
    });
    return found == std::end(table()) ? nullptr : found;
}

std::string_view last_part(const PolicyKey &key) noexcept
{
    return key.path.substr(key.path.rfind('.') + 1); // npos + 1 is 0
}

std::string display_path(const PolicyKey &key)
{
    std::string text(key.path);
    for (auto star = text.find('*'); star != std::string::npos; star = text.find('*'))
        text.replace(star, 1, "NAME");
    return text;
}

std::string form_text(const PolicyKey &key)
{
    switch (key.form) {
    case ValueForm::version:
        return fmt::format("the number {}", policy_version);
    case ValueForm::section:
        return "a mapping of the keys below";
    case ValueForm::names:
        return "a mapping of names";
    case ValueForm::document:
        return "a mapping, as JSON";
    case ValueForm::boolean:
        return "`true`, `false`";
    case ValueForm::text:
    case ValueForm::line:
    case ValueForm::fixed:
        return "text";
    case ValueForm::name:
        return "a name";
    case ValueForm::choice:
        return words(key.choices) + (key.later.empty() ? "" : "; not yet: " + words(key.later));
    case ValueForm::list:
        return "a list";
    case ValueForm::choice_or_list:
        return words(key.choices) + ", or a list";
    case ValueForm::amount:
        return "a whole number with " + words(key.choices);
    case ValueForm::count:
        return "a whole number";
    case ValueForm::later:
        return "nothing yet";
    }
    return "";
}

} // namespace pi_agent
