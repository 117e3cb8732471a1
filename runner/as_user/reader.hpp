// The reading half of the config sync: runs as the user, opens everything that the user's config names, and follows symlinks with the
// user's rights only. It follows none out of a directory that agents write in.
#pragma once

#include "common/base/fd.hpp"
#include "common/decide/agent_places.hpp"
#include "common/host/identity.hpp"
#include "common/policy/config_classes.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// A directory of the user that is brought to a place in the agent's home.
struct ConfigSource {
    std::string directory; // absolute; a missing one counts as empty
    std::string inside;    // relative to the agent's home
    bool is_config;        // the config directory, with documents and classes; else all of it is mirrored
};

struct ReadingPlan {
    std::vector<ConfigSource> sources;
    ConfigClasses classes;
    std::vector<std::string> documents; // of the config directory: sent first, and not listed
    AgentPlaces agents;                 // content of these places leads nowhere else
    std::string sessions_outside = {};  // of the config directory: named once, where it holds sessions; empty: none stay outside
};

// Tells the writer over `transfer` (both ways) what there is and hands it what it asks for; sends the names of what is skipped, each as one
// answer, over `channel`; an empty answer means done. Throws Failure(configuration) when a source is not a readable directory, or a
// document not a readable file.
void read_config(const AsUser &user, const ReadingPlan &plan, FdRef transfer, FdRef channel);

} // namespace pi_agent
