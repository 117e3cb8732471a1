// What the fetching program must fetch, and what it answers, line by line.
#pragma once

#include "common/agents/registry.hpp"

#include <cstdint>

namespace pi_agent {

// Which agent in which version somebody asks for, and how versions of packages are ordered.

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

// A path inside a package, as "bin" of a package.json has it: relative, with no odd component, of harmless characters.
bool is_path_in_package(std::string_view text) noexcept;

// What the fetching program must fetch, and what it answers, line by line.

// A package that is needed before npm runs, with its check sum as npm writes it.
struct PinnedPackage {
    std::string package;
    std::string version;
    std::string integrity;
};

struct FetchOrder {
    std::string registry;         // a URL with a slash at its end; empty: npm's own, where an npm is installed that knows it
    NpmSettings settings;         // for npm, and the proxies
    std::string certificates;     // in the form PEM, beside the host's; empty where none are named
    PinnedPackage node, npm;      // npm runs on that node, and so does the agent
    std::string package;          // the agent's
    std::string command;          // the name of its program in "bin" of its package.json
    std::string platform_package; // if the agent is not JavaScript: the package with its program
    std::string version;          // exact, or a tag
    std::string manifest;         // package.json and package-lock.json of the tree, where this release was tested with this version
    std::string lock;
};

// As JSON. Any other text is a Failure(internal): root writes it.
std::string write_fetch_order(const FetchOrder &order);
FetchOrder read_fetch_order(std::string_view json);

// --- Lines that it writes: a word, then fields behind tabs. Root believes only what it has checked.
struct FetchLine {
    enum class Kind { step, size, failure, done } kind = Kind::step;
    std::string text = {}; // what it does now; or why it failed
    std::uint64_t got{};   // of a download, in bytes; `all` is 0 where the size is not known
    std::uint64_t all{};
    std::string version = {}, program = {}; // of what is there at the end
};

std::string write_fetch_line(const FetchLine &line);
// Empty for any other line.
std::optional<FetchLine> read_fetch_line(std::string_view line);

// Its working directory, and what it leaves there: a node, and what npm made (systemd.exec(5), StateDirectory=).
inline constexpr const char *fetch_name = "pi-agent-fetch";
inline constexpr const char *fetch_directory = "/var/lib/pi-agent-fetch";
inline constexpr const char *fetched_tree = "tree";

} // namespace pi_agent
