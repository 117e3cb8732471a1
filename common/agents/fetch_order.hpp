// What of agents can be fetched: npm's configuration, a registry's answers, and the order and the answers of the fetching program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

// --- A package registry: npm's configuration, as far as fetching depends on it, and the registry's answers.

using NpmSettings = std::map<std::string, std::string>;

// The value of a variable of the environment; none when it is not set.
using NpmVariable = std::function<std::optional<std::string>(const std::string &name)>;

// The keys and values of an npmrc file: the last line of a key counts. ${NAME} is replaced where the variable is set. Lists and sections,
// which npm has no use for here, are passed over.
NpmSettings read_npmrc(std::string_view text, const NpmVariable &variable);

// Whether npm's settings for a fetch may have this key: registry, @SCOPE:registry, what belongs to one registry's URL, proxies.
bool is_npm_setting_of_fetch(std::string_view key) noexcept;

// As lines of an npmrc file, each value quoted; only keys of a fetch.
std::string write_npmrc(const NpmSettings &settings);

// An http or https URL of harmless characters, without a name and password in it.
bool is_registry_url(std::string_view url) noexcept;
// Whether others on the way cannot read or change what such a URL fetches: by https, or from this host itself.
bool is_safe_on_the_way(std::string_view url) noexcept;
// For messages: a name and password or a query, in something that was meant as a URL, becomes "***".
std::string without_secrets(std::string_view url);
// With a slash at its end.
std::string registry_directory(const std::string &url);

// The token that npm sends to this registry: of the key //HOST/PATH/:_authToken that fits best. Empty without one.
std::string token_of_registry(const NpmSettings &settings, std::string_view registry);

// A registry's answer about a package, and the check sums that npm calls integrity.

// The bytes of a sha512, of "sha512-" and its base64; of several, divided by spaces, the first of that kind. Empty without one.
std::optional<std::string> read_integrity(std::string_view text) noexcept;

// One version of a package.
struct PackageAnswer {
    std::string version;
    std::string tarball; // http or https
    std::string integrity;
};

inline constexpr std::size_t registry_answer_limit = std::size_t{64} << 20U;

// `version` is exact, or a tag. Throws Failure(unavailable) for any other text, and for an answer that does not know this version;
// `package` is for messages.
PackageAnswer read_registry_answer(std::string_view json, const std::string &package, const std::string &version);

// The content of a package.json: its version, and the program that it has by that name ("bin"). Throws as above.
struct PackageProgram {
    std::string version;
    std::string program; // in the package
};
PackageProgram read_package_program(std::string_view json, const std::string &package, const std::string &command);

// --- What the fetching program must fetch, and what it answers, line by line.

// The argument of agent install: AGENT, or AGENT@VERSION.
struct AgentRequest {
    std::string agent;
    std::string version; // exact, or a tag of the registry such as "latest"; empty: the one that this release was tested with
};

// Throws Failure(usage). "" is the first agent that pi-agent ran, pi.
AgentRequest read_agent_request(std::string_view text);

// MAJOR.MINOR.PATCH, with -PRERELEASE and +BUILD where it has these; at most 64 characters, safe in a path.
bool is_package_version(std::string_view text) noexcept;

// By the rules of Semantic Versioning; a prerelease comes before its release. Both are package versions.
bool is_older_version(std::string_view one, std::string_view other) noexcept;

// A path inside a package, as "bin" of a package.json has it: relative, with no odd component, of harmless characters.
bool is_path_in_package(std::string_view text) noexcept;

// A package that is needed before npm runs, with its check sum as npm writes it.
struct PinnedPackage {
    std::string package, version, integrity;
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
