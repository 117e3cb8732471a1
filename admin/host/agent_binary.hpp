// The agent's program: whether it can be trusted, and hiding it from everybody but agents while the wrapper is on.
#pragma once

#include "admin/host/changes.hpp"
#include "common/base/problems.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// What is closed to others: the tree that holds nothing but the agent, its npm package, or where there is none the program's file alone.
struct HidingPlace {
    std::string path;
    bool whole_tree;
};

// `directory` is the canonical directory of agent.binary, `program` the canonical file that it leads to. The rule: a program in
// TREE/bin whose TREE is /usr/lib/pi-agent/agent or lies below /opt, and that leads nowhere outside of it, hides TREE; one in an npm
// package hides that; any other hides its file only, because its directory is shared (/usr/bin). Nothing in the Nix store, which cannot be
// changed.
std::optional<HidingPlace> choose_hiding_place(const std::string &directory, const std::string &program);

// Reports a program that is absent, no executable file, changeable by others than root, or the wrapper itself. Returns false when this
// process may not look.
bool check_agent_binary(const Policy &policy, Problems &problems);

// The directory of the innermost npm package that holds this canonical path (DIRECTORY/node_modules/NAME or …/@SCOPE/NAME). Pure.
std::optional<std::string> npm_package_of(const std::string &path);

// Gives `path`, canonical, to root and the agents' group, closed to others; or opens it again where the policy says hide_direct_binary:
// false. `what` says in messages what it is.
void hide_place(const AsRoot &root, const Policy &policy, const std::string &path, const std::string &what, Changes &changes);

// That of agent.binary. Throws SystemFailure (ENOENT) where there is no such program.
std::optional<HidingPlace> hiding_place_of(const AsRoot &root, const Policy &policy);
// The same, but none where the agent was removed.
std::optional<HidingPlace> hiding_place_if_there(const AsRoot &root, const Policy &policy);

// Does so with the hiding place of agent.binary.
void hide_agent_binary(const AsRoot &root, const Policy &policy, Changes &changes);

} // namespace pi_agent
