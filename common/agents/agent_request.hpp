// Which agent in which version somebody asks for, and how versions of packages are ordered.
#pragma once

#include <string>
#include <string_view>

namespace pi_agent {

// The argument of install-agent: AGENT, or AGENT@VERSION.
struct AgentRequest {
    std::string agent;
    std::string version; // exact, or a tag of the registry such as "latest"; empty: the one that this release was tested with
};

// Throws Failure(usage). "" is the first agent that pi-agent ran, pi.
AgentRequest read_agent_request(std::string_view text);

// MAJOR.MINOR.PATCH, with -PRERELEASE and +BUILD where it has these; at most 64 characters, safe in a path.
bool is_package_version(std::string_view text) noexcept;
// A name that registries give to versions: a letter, then letters, digits, dots, dashes and underscores.
bool is_version_tag(std::string_view text) noexcept;

// By the rules of Semantic Versioning; a prerelease comes before its release. Both are package versions.
bool is_older_version(std::string_view one, std::string_view other) noexcept;

// A name of a package: NAME or @SCOPE/NAME, of the characters that registries take.
bool is_package_name(std::string_view text) noexcept;
// A path inside a package, as "bin" of a package.json has it: relative, with no odd component, of harmless characters.
bool is_path_in_package(std::string_view text) noexcept;

} // namespace pi_agent
