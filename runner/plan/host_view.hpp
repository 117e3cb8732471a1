// What a session has of the host: its view, its environment, and its gate.
#pragma once

#include "common/policy/policy_sections.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/wire/gate_messages.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

// --- The agent's environment: layers in a fixed order. From the user's shell come only variables that describe the terminal.
struct EnvironmentVariable {
    std::string value;
    std::string from; // for people: "shell", "/home/alice/.pi/agent/env:3", "env", "/etc/pi-agent/env:1", "users.alice.env", "pi-agent"
};

// From the lowest layer to the highest.
struct EnvironmentInput {
    std::vector<std::string> presentation;    // NAME=VALUE from the request
    std::vector<EnvAssignment> host_files;    // the user's own
    Environment managed;                      // policy `env`
    std::vector<EnvAssignment> managed_files; // policy `env_files`
    Environment per_user;                     // policy `users.NAME.env`
    std::string home;
    std::string agent_name; // account
    std::string binary, session_id;
    std::map<std::string, EnvironmentVariable> defaults = {};    // of the product, below all layers: each can replace them
    std::map<std::string, std::string> certificates_inside = {}; // variables that name files of certificates: their paths inside
    std::vector<PolicyPath> path = {};                           // policy `path`
    std::vector<std::string> user_path = {};                     // of the user's PATH, as seen inside
    Environment gate = {};                                       // of a session whose connections go through one
    std::set<std::string> held_outside = {};                     // variables that no layer may set: the gate holds their keys
    std::string tmpdir = {};                                     // the user's choice, as seen inside; empty: the session's own
};

// Where the host has its programs (build option): directories in the order of PATH. They come after the home's and the shims.
std::vector<std::string> system_path();

// The product's own variables win over every layer.
std::map<std::string, EnvironmentVariable> layer_environment(const EnvironmentInput &input);

// The same as NAME=VALUE, sorted by name.
std::vector<std::string> compose_environment(const EnvironmentInput &input);

// What the policy sets, of all its layers.
Environment managed_environment(const EnvironmentInput &input);

// --- Which variables of an environment name files of certificates.
struct CertificateVariable {
    std::string name;
    std::string path; // as the variable has it
    std::string from; // for people: what sets it
};

// Whether a variable is known to name such a file, or directories of them.
bool names_certificates(std::string_view name) noexcept;
bool names_certificate_directories(std::string_view name) noexcept;

// The variables of this kind that an environment sets.
std::vector<CertificateVariable> find_certificate_variables(const EnvironmentInput &environment);

// --- Which keys of the user's shell a session lacks.

// For people: one text for each name in `kept_out` (the caller's variables) that is a provider's key and is not set in `environment`, or
// names a directory of the agent, together with the name. `own_files`: of the policy, relative to the home.
std::vector<std::pair<std::string, std::string>> missed_keys(const std::vector<std::string> &kept_out, const EnvironmentInput &environment,
                                                             const std::vector<std::string> &own_files);

// --- Which model providers the policy's environment has keys for.

// Names of providers, as auth.json has them, whose key variable (as pi reads it, versions 0.87 to 1.6) is set and not empty in `env`.
std::set<std::string> providers_with_keys(const Environment &env);

// --- What of the host a session sees, read-only: the rules, by paths alone (runner/root/view/root_tree.hpp looks at the host).

// Programs and their libraries: in every view. The symlinks of a merged /usr are made again as symlinks.
inline constexpr std::array<std::string_view, 9> program_trees = {"/usr",   "/opt",   "/bin",    "/sbin",     "/lib",
                                                                  "/lib32", "/lib64", "/libx32", "/nix/store"};

struct HostView {
    View view = View::minimal;
    // What is shown besides, at its own place: view_paths, and what the agent's program and certificates need. No tree is below another
    // one.
    std::set<std::string> trees;
    std::map<std::string, std::string> links; // symlinks on the way to those, with their texts
};

// True when sessions see the host's `path` (canonical).
bool is_shown(const HostView &view, const std::string &path);

// The same, without the view's own trees.
bool is_shown_by(View view, std::string_view path);

// What the minimal view shows of a directory, by its path below /etc ("php/8.4/cli"): all of it, or nothing but what it leads to.
enum class ShownOfEtc { nothing, way, whole };
ShownOfEtc shown_of_etc(std::string_view path);

// What to show of a place with a program in it, by its path alone: the directory that holds its bin, or its outermost node_modules;
// otherwise the program's own directory. Never a directory at the top of the host.
std::string tree_of_program(const std::string &path);

// The interpreter that a script names after `#!`; empty for any other file.
std::string interpreter_of(std::string_view first_bytes);

// --- The mount points that keep an agent from what is protected and masked in a project.
enum class PointKind { prefix, read_only };

// Every mount point that these paths need, parents before what is in them: the paths read-only, and each directory above one as it is. A
// directory that is not a mount point could be renamed and replaced. A path in a read-only one needs no mount point. `kept`: directories
// that only must stay where they are, and those above them. Throws Failure(limit) for more than `most`.
std::map<std::string, PointKind> plan_points(const std::vector<std::string> &read_only, const std::vector<std::string> &kept = {},
                                             std::size_t most = guard_limit);

// --- The name under which the agent's home has a project: ~/projects/NAME-HASH, the same at every start.

constexpr const char *alias_directory = "projects"; // beneath the home

// "demo-1f3a99c2" for the canonical path (any bytes) of a project: its last component, as far as its characters are harmless, and a hash of
// the whole path (FNV-1a, 64 bits, folded), because many directories share a name. The hash only keeps them apart; it protects nothing.
std::string alias_of(const std::string &project_path);

// --- The single files of /etc in the minimal view: which ones, and the text of those that are the session's own.

// Names below /etc of the files that are copied from the host.
std::vector<std::string> shown_etc_files();

// Copies of what packages have in /etc and nobody changed, which apply and dpkg make (admin/host/package_files.cpp). Sessions see them at
// the same place, and links in a session's /etc lead there.
constexpr const char *package_files_directory = "/var/lib/pi-agent/etc";

// A line of passwd(5) or group(5) for each of these and nobody else. The accounts come from the host's user database, wherever it keeps
// them. Names that these files cannot hold are left out.
std::string passwd_text(const std::vector<Account> &accounts, const std::string &agent_name, const std::string &agent_home);
std::string group_text(const std::vector<std::pair<std::string, Gid>> &groups);

// --- Where the temporary directory is that a user names (--pi-agent-tmpdir), by its name alone.

// Throws Failure(denied): "denied: --pi-agent-tmpdir: ".
[[noreturn]] void refuse_tmpdir(const std::string &problem);

// `named` beneath the root, without "." and "..": relative to the working directory, or absolute. Throws Failure(denied) when it is outside
// what is shown.
std::string place_of_tmpdir(const std::string &named, const std::string &shown_path, const std::string &below);

// --- fd and rg, with which the agent searches. When it starts, it downloads those that the host lacks, or waits long for a network that it
// may not use.

// For an administrator: what is missing, and which package brings it.
std::string name_package(const std::string &missing);

// Where the policy restricts the network and one of them is missing, stops the agent from downloading and waiting. Each layer of the
// environment can override that.
void keep_from_downloading(EnvironmentInput &environment, const NetworkPolicy &network, const std::vector<std::string> &missing);

// --- Places that the caller's shell names: its PATH, its editor, and git's variables, as one of git's hooks has them.

// The host's path of a tree that the session shows, and its path inside; any bytes.
using ShownAs = std::pair<std::string, std::string>;

// By paths alone: nothing is opened, because root must not follow what is in a project or a home. Inside, a symlink leads nowhere else.
struct PlacesInside {
    std::vector<ShownAs> work;       // the project first, then git directories elsewhere
    std::vector<ShownAs> toolchains; // of the caller's home
    const HostView &view;
    std::string below;                                    // the working directory, beneath the project
    std::function<bool(const std::string &)> has_program; // whether the host's directories of PATH have one of this name
};

struct ShellPlaces {
    std::vector<std::string> presentation; // NAME=VALUE: those that name no place, and git's and the editor's where shown
    std::vector<std::string> path;         // of PATH, in its order, each by its path inside
    std::vector<std::string> notices;      // of what is left out
};

// Judges `variables`, as the request has them (common/base/request.hpp). Git's come all together or not at all: an index of one repository
// with the directory of another would make a commit that nobody meant.
ShellPlaces judge_shell_places(const std::vector<std::string> &variables, const PlacesInside &places);

// --- Which of an agent's arguments name files, and how they read where the session has copies of those files.

// How the agent takes an argument that names a file.
enum class NamedAs {
    file,
    tree,    // a file, or a directory with all that is in it
    text,    // a file where one of that name exists, otherwise text
    written, // a file that the agent goes on writing
    place,   // a directory that the agent writes to, and makes
};

struct ArgumentFile {
    std::size_t argument; // index
    std::size_t begin;    // of the path in it
    std::string path;     // absolute, without `.`, `..` and double slashes, as the agent itself would read it
    NamedAs as;
};

// The files that pi's arguments name, in their order. `directory` is the caller's working directory, `home` their home. Leaves out what
// cannot be a path, and paths of more than 4095 bytes.
std::vector<ArgumentFile> find_named_files(const std::vector<std::string> &arguments, const std::string &directory,
                                           const std::string &home);

constexpr std::size_t named_files_limit = 500; // of one start

// Where the session shows copies, and the place of the copy with this number, from 1.
constexpr const char *copies_inside = "/run/pi-agent/named";
std::string place_of_copy(std::size_t number, const ArgumentFile &file);

// Puts `path` into its argument, where the argument named the file.
void rename_argument(std::vector<std::string> &arguments, const ArgumentFile &file, const std::string &path);

// The gate of a session as data: its unit, its order without keys, and what its session is told of it.

// --- Where the gate is, seen from inside.

constexpr const char *loopback_v4 = "127.0.0.1";
constexpr const char *loopback_v6 = "::1";
// Below 1024, so that no server of the session's can have them. The same in all sessions: those of one agent share a home, and what is
// written there holds for all of them. None of the ports that browsers and node refuse (fetch.spec.whatwg.org, "bad port").
constexpr std::uint16_t gate_proxy_port = 808;
constexpr std::uint16_t gate_route_port = 809;
constexpr const char *name_server_inside = "127.0.0.53";
constexpr std::uint16_t name_server_port = 53;

// /etc/resolv.conf of the session.
std::string resolv_conf_inside();

// Names for which a host's own /etc/hosts has an address of the loopback, besides localhost.
std::vector<std::string> names_of_loopback(std::string_view hosts);

// /etc/hosts of the session. The host's own would give names addresses that no rule names, before anybody asks the gate. `names` lead to
// the session's own loopback.
std::string hosts_inside(const std::string &host_name, const std::vector<std::string> &names = {});

// Its names of the host itself alone; also without the host name.
std::string own_hosts(const std::string &host_name);

// What programs read that go through a proxy, except to servers of the session's own with these `names`; the others arrive at the gate as
// well. No layer of the environment may set them otherwise: nothing else leads out.
Environment gate_environment(const std::vector<std::string> &names = {});

// --- Its unit.

// What becomes its file system, a directory that holds at most the symlinks of a merged /usr, and the host's places that are mounted in it;
// and what the policy lets it have.
struct GateRoot {
    std::string directory;
    std::vector<std::string> shown;
    std::optional<std::uint64_t> cpu = {}; // percent of a processor, as the session has (limits.cpu)
};

// Places that it has, where the host has them: programs and libraries, names and certificates. systemd passes over a missing one.
std::vector<std::string> places_of_gate();

std::vector<UnitProperty> gate_properties(const std::string &session_id, Uid user, const SystemdFeatures &features, const GateRoot &root);

// --- Its order.

constexpr std::size_t host_port_limit = 200;
static_assert(2 * host_port_limit + 8 < gate_listener_limit); // two listeners for each, and the gate's own

// Places of the policy that a session's gate may name in denials, in letters that root takes back from it. A gate that the agent has taken
// over would name another, for people to read.
std::set<std::string> denial_places(const NetworkPolicy &network, const std::vector<ProviderRule> &providers);

// The policy's rules. Providers follow with their keys: to_gate_provider.
GateOrder plan_gate(const Policy &policy, const std::string &session_id);
// Takes over the key. Throws Failure(configuration) for a provider that no gate can hold the key of.
GateProvider to_gate_provider(const ProviderRule &rule, std::string key);
// Whether it is found inside by a program that connects by itself: of the loopback, at 127.0.0.1 or ::1. Other addresses of it, and names
// below "localhost", are reached by the proxy alone.
bool has_own_listener(const HostRule &rule);
// Ports of rules that have one. Throws Failure(configuration) for more than a session has listeners for.
std::vector<std::uint16_t> host_ports(const NetworkPolicy &network);

// --- What the agent reads in its view (runner/wire/gate_messages.hpp), and its user at the end.

// "HOST:PORT"; the gate denies some connections before it knows to whom they go.
std::string place_of_denial(const GateDenial &denial);
// "HOST:PORT: what was denied, and what would change it" with a line feed.
std::string denial_line(const GateDenial &denial);

struct DeniedPlaces {
    std::uint64_t connections = 0;
    std::map<std::string, std::uint64_t> places; // "HOST:PORT", a bounded number of them
};
// One line; empty where nothing was denied.
std::string denied_notice(const DeniedPlaces &denied);

// How pi reaches the providers whose keys the session's gate holds: what its models.json and its environment say of them.

// `placeholders`: what stands for each key, in the order of the rules; without them, what stands for most.
//
// Of a provider with two names, both have it: no version of pi minds an entry of a name that it does not know.
//
// pi 0.87 to 1.6 keeps its own models of a provider that models.json only gives another address, and asks none without a key. The host in
// the path is for pi itself, which looks at addresses to know what a provider understands.
nlohmann::json models_of_held_keys(const std::vector<ProviderRule> &rules, const std::vector<std::string> &placeholders,
                                   std::uint16_t route_port);

// Says which variables a session gets from no layer, and what it gets instead; the gate's own come later. By the policy as it holds in the
// root, whatever the start gives up: a session whose network leads to no gate has neither the keys nor a route.
//
// Variables with a key of a provider would give it away, and others would lead pi past the gate. pi 0.73 took such a key before the
// one of models.json. A proxy (which may have a password in its address) leads nowhere from a network of the session's own.
void hold_outside(EnvironmentInput &environment, const Policy &policy);

} // namespace pi_agent
