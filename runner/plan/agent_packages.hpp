// The packages that an agent's settings name, and where its home would have them.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// The source that an entry of a settings' list of resources names: the entry itself, or its "source". None for anything else.
std::optional<std::string> source_of_resource(const nlohmann::json &entry);

struct AgentPackage {
    std::string source;              // as the settings have it
    std::vector<std::string> places; // relative to the agent's home: installed when one is there
};

// Packages from npm and git; any other source, or one without a known place, is left out.
std::vector<AgentPackage> packages_of(const nlohmann::json &settings);

} // namespace pi_agent
