// Installs agents: an account that has nothing else fetches them, and root takes them over. Versions are side by side, one of them in use.
#pragma once

#include "common/agents/fetch_order.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/sandbox_plan.hpp"

#include <ostream>

namespace pi_agent {

// --- What this release knows of an agent: a directory of data below the product's own, with the agent's name.

struct KnownAgent : FetchOrder { // of the version that this release was tested with, for this machine
    std::string name;
};

std::vector<std::string> known_agents();
// Throws Failure(usage) for an agent that this release does not know, Failure(unavailable) if it knows no node for this machine.
void require_known_agent(const std::string &name);
KnownAgent read_known_agent(const std::string &name);

// --- Where agents are. Root owns all of it: AGENTS/NAME/VERSION is a tree, AGENTS/NAME/current and previous are links to two of these.

inline constexpr const char *agents_directory = "/usr/lib/pi-agent/agents";
inline constexpr const char *default_agent = "pi";                           // the one that agent.binary names by default
inline constexpr const char *default_agent_link = "/usr/lib/pi-agent/agent"; // leads to AGENTS/pi/current
inline constexpr const char *unfinished_name = ".new";                       // of a tree that is being made

struct InstalledAgent {
    std::string name, version;
    bool is_current = false, is_previous = false;
    std::uint64_t since = 0; // when it was installed, in microseconds since 1970
};

// Sorted by name and version.
std::vector<InstalledAgent> installed_agents(const AsRoot &root);
std::optional<InstalledAgent> current_agent(const std::vector<InstalledAgent> &all, const std::string &name);
bool has_version(const std::vector<InstalledAgent> &all, const std::string &name, const std::string &version);

// Whether an agent that was installed by hand is where default_agent_link belongs.
bool is_installed_by_hand(const AsRoot &root);

// Whether the current version of this agent is what starts by default. After a kill in the middle of a switch it may not be.
bool is_linked(const AsRoot &root, const std::string &name);

// Makes the directories of agents, hidden as the policy says.
void make_agents_directory(const AsRoot &root, const std::string &name);
// Removes these trees, whose parents only root can change, with rm(1). `what` they are is for the message. Throws Failure.
void remove_trees(const std::vector<std::string> &paths, const std::string &what);

// Removes what a killed run left. Under the lock.
void remove_unfinished(const AsRoot &root);
// Puts the tree that take_over() made into its place among the versions.
void place_version(const AsRoot &root, const std::string &name, const std::string &version);
// Makes this version the one that starts from now on. The former one becomes previous. An agent that was installed by hand becomes a
// version.
void switch_to(const AsRoot &root, const std::string &name, const std::string &version);
// Exchanges the current version and the previous one, in one step.
void switch_back(const AsRoot &root, const std::string &name);
void remove_version(const AsRoot &root, const std::string &name, const std::string &version);

// --- Fetching: the program runs in a unit of its own.

// The properties of that unit. Pure.
std::vector<UnitProperty> fetch_unit_properties();

using HearFetch = std::function<void(const FetchLine &line)>;
// Returns what the program says of the staging directory at its end. Calls `wait` several times a second. Throws Failure(unavailable) with
// the program's reason.
FetchLine fetch_in_unit(const AsRoot &root, const FetchOrder &order, const HearFetch &hear, const std::function<void()> &wait);
// Takes the settings from root's npm configuration and environment. `registry` is the option's value, or empty.
void configure_fetch(const AsRoot &root, const std::string &registry, FetchOrder &order);
// Ends a unit that a killed run left, and removes what was fetched.
void end_fetch(const AsRoot &root);

// --- Taking over: a copy that root owns, with only files, directories and links that stay inside.

// Why an entry of a fetched tree cannot be taken over; empty if it can. `owner` is the tree's owner. Pure.
std::optional<std::string> problem_of_entry(const struct stat &facts, uid_t owner);
// The same for the text of a link in a directory `depth` levels below the top. Pure.
std::optional<std::string> problem_of_link(std::string_view text, std::ptrdiff_t depth);

// Copies what was fetched to a directory of root's among the agents, adds the program that starts it, and writes it to disk. Throws
// Failure(denied), which names what it does not take.
void take_over(const AsRoot &root, const KnownAgent &agent, const FetchLine &fetched);
// The text of that program, for sh(1). Pure.
std::string launcher_text(const KnownAgent &agent, const FetchLine &fetched);

// --- The commands.

struct InstallOrder {
    std::string request, registry;
    bool is_upgrade = false; // only of what is installed already
};
void run_install_agent(const InstallOrder &order, std::ostream &out);
void run_agent_list(bool json, std::ostream &out);
void run_agent_rollback(const std::string &name, bool yes, std::ostream &out);
void run_agent_prune(bool yes, std::ostream &out);

} // namespace pi_agent
