// Where the agent is installed, and whether npm installed it for everybody.
#pragma once

#include "admin/host/root_files.hpp"

namespace pi_agent {

// --- The agent's program: whether it can be trusted, and hiding it from everybody but agents while the wrapper is on.

// What is closed to others: the tree that holds only the agent, or its npm package, or without these only the program's file.
struct HidingPlace {
    std::string path;
    bool whole_tree;
};

// `directory` is the canonical directory of agent.binary, `program` the canonical file that it leads to. The rule: a program of
// /usr/lib/pi-agent/agents (pi-agentctl install-agent) hides that directory, with all versions. One in TREE/bin hides TREE, if TREE is
// /usr/lib/pi-agent/agent or is below /opt, and the program leads nowhere outside of it. One in an npm package hides the package. Any other
// hides only its file, because its directory is shared (/usr/bin). Nothing in the Nix store is hidden, because it cannot be changed.
std::optional<HidingPlace> choose_hiding_place(const std::string &directory, const std::string &program);

// Reports a program that does not exist, is not an executable file, is the wrapper itself, or can be changed by others than root. Returns
// false if this process may not look.
bool check_agent_binary(const Policy &policy, Problems &problems);

// The directory of the innermost npm package that holds this canonical path (DIRECTORY/node_modules/NAME or …/@SCOPE/NAME). Pure.
std::optional<std::string> npm_package_of(const std::string &path);

// The hiding place of agent.binary. Throws SystemFailure (ENOENT) if there is no such program.
std::optional<HidingPlace> hiding_place_of(const AsRoot &root, const Policy &policy);
// The same, but empty if the agent was removed.
std::optional<HidingPlace> hiding_place_if_there(const AsRoot &root, const Policy &policy);

// Gives that place to root and the agents' group, closed to others; or opens it again where the policy says hide_direct_binary: false.
void hide_agent_binary(const AsRoot &root, const Policy &policy, Changes &changes);

// --- What apply has hidden on this host, with the owner and mode that it had before.

struct FormerRights {
    uid_t uid = 0;
    gid_t gid = 0;
    mode_t mode = 0755;
    bool operator==(const FormerRights &) const = default;
};
FormerRights rights_in(const struct stat &facts);
void give_rights(FdRef place, const FormerRights &rights, const std::string &path);
void to_json(nlohmann::json &json, const FormerRights &rights);
void from_json(const nlohmann::json &json, FormerRights &rights);

// By canonical path. Kept beside the policies that were applied (admin/host/root_files.hpp), in a directory that only root can enter.
using HiddenPlaces = std::map<std::string, FormerRights>;
HiddenPlaces read_hidden_places(const AsRoot &root);

// Notes the current owner and mode of `path` before they change; what is noted of it already stays.
void remember_hidden(const AsRoot &root, const std::string &path, const struct stat &facts);

// Whether a group is the agents': `group`, which the last applied policy names, or a group that does not exist any more.
bool is_agents_group(const AsRoot &root, gid_t gid, const std::string &group);

// Gives owner and mode back to each noted place that is not in `current`, and forgets it. A place whose owner or mode somebody has changed
// meanwhile stays as it is. It stays noted as long as it belongs to the agents' group.
void give_back_hidden(const AsRoot &root, const std::set<std::string> &current, const std::string &group, Changes &changes);

// --- The agent as npm installs it for everybody (npm install -g), beside the one that the policy names.

// The directories where everybody's shell finds programs.
inline constexpr std::array<const char *, 6> system_program_directories = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                                                           "/usr/bin",        "/opt/bin",       "/snap/bin"};

struct NpmInstall {
    std::string path;     // of the package's directory
    bool is_open;         // to everybody, by its mode; or not known, where others can change the way to it
    std::string why_left; // what keeps apply from closing it; empty when nothing does
};

// Packages of the agent's names in npm's global directories, and those that the command `pi` of a system directory is a link into, without
// the one that holds agent.binary. Root changes nothing on a way that others can change, and nothing that a link only leads to.
std::vector<NpmInstall> find_npm_installs(const AsRoot &root, const Policy &policy);

// These, and the place of agent.binary if it exists.
std::set<std::string> places_of_agent(const AsRoot &root, const Policy &policy);

// Closes the open ones like the policy's agent, or opens those that were closed so if the policy says hide_direct_binary: false. Returns
// those that stay open.
std::vector<NpmInstall> hide_npm_installs(const AsRoot &root, const Policy &policy, Changes &changes);

} // namespace pi_agent
