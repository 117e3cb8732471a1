// The packages that an agent's settings name, and where its home would have them.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// What an entry of a settings' list of resources names: it says so itself, or its "source" does. None for anything else.
std::optional<std::string> source_of_resource(const nlohmann::json &entry);

struct AgentPackage {
    std::string source;              // as the settings have it
    std::vector<std::string> places; // relative to the agent's home: installed when one is there
};

// Those from npm and git; of a source that is neither, or whose place cannot be told, nothing is said.
std::vector<AgentPackage> packages_of(const nlohmann::json &settings);

} // namespace pi_agent
