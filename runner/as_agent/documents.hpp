// The documents that a sync writes: what it does about each, how JSON is merged, and the packages that they name.
#pragma once

#include "common/policy/policy.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

// The packages that an agent's settings name, and where its home would have them.

// The source that an entry of a settings' list of resources names: the entry itself, or its "source". None for anything else.
std::optional<std::string> source_of_resource(const nlohmann::json &entry);

struct AgentPackage {
    std::string source;              // as the settings have it
    std::vector<std::string> places; // relative to the agent's home: installed when one is there
};

// Packages from npm and git; any other source, or one without a known place, is left out.
std::vector<AgentPackage> packages_of(const nlohmann::json &settings);

// --- Parses a user's JSON with bounds, and merges managed values over it.
enum class JsonSyntax { strict, with_comments }; // comments and trailing commas, as pi allows in models.json

// JSON whose top level is an object, at most 128 levels deep. Throws Failure(configuration) with "name:line:column".
nlohmann::json parse_json_object(const std::string &text, const std::string &name, JsonSyntax syntax = JsonSyntax::strict);

// Objects merge recursively; arrays, scalars and null are replaced by the managed value.
nlohmann::json merge_managed(nlohmann::json host, const nlohmann::json &managed);

// --- Numbers of JSON documents that no C++ number holds as they are written (more than 18 digits, fractions, exponents, -0): they pass
// byte for byte. In a document they are texts with a mark that nobody writes by accident.

// JSON in which these numbers are marked texts, and where that added bytes: after which byte, and how many.
struct MarkedNumbers {
    std::string text;
    std::vector<std::pair<std::size_t, std::size_t>> added;
    // Translates a place in `text` into one in the original; both count from 1.
    [[nodiscard]] std::size_t original(std::size_t byte) const;
};

MarkedNumbers mark_numbers(const std::string &text);

// A document as text again, with its numbers as they were written. `indent` as for nlohmann's dump.
std::string dump_with_numbers(const nlohmann::json &document, int indent = -1);

// Whether two values are equal, or are the same number written in two ways.
bool are_same_values(const nlohmann::json &one, const nlohmann::json &other);

// --- How the host's, the agent's and the managed version of a JSON document become one. Pure: no file is touched here.

// The versions of one document, each an object. `base_*` come from the last sync, none before the first.
struct DocumentVersions {
    nlohmann::json host = nlohmann::json::object();
    std::optional<nlohmann::json> inside;
    std::optional<nlohmann::json> base_host;
    std::optional<nlohmann::json> base_chosen;  // what was chosen of both, before the managed values
    std::optional<nlohmann::json> base_written; // what the last sync left inside
    void forget_base() { base_host = base_chosen = base_written = std::nullopt; }
};

// Merges settings.json and, where they are managed, models.json, keybindings.json and mcp.json, before their managed values. Class seed,
// and once: for each key the host's value if the host changed it, else the one inside. agent: what is inside. never: what is inside,
// without what the host had. mirror: the host's. In any class the agent's own keys of settings.json stay: lastChangelogVersion, the larger
// of both, trackingId and deviceId.
nlohmann::json merge_document(const std::string &name, FileClass file_class, const DocumentVersions &versions);

// Merges auth.json and mcp-auth.json, entry by entry. The host decides about an api_key. The agent keeps an OAuth entry once it has one
// (each refresh rotates the token, and the host's copy goes stale), until a new login changes the host's entry. When the host no longer has
// an entry, it goes inside too, unless it was changed there. With mirror the host decides about all entries. With agent the entries inside
// stay. With never an entry inside stays only where it differs from what the host had. Entries of `managed_providers` go. Every entry of
// mcp-auth.json counts as OAuth.
nlohmann::json merge_credentials(const std::string &name, FileClass file_class, const DocumentVersions &versions,
                                 const std::set<std::string> &managed_providers);

// auth.json without keys of these providers: of each, nothing but a login (`oauth`) is left.
nlohmann::json without_keys_of(nlohmann::json credentials, const std::set<std::string> &held_providers);

// models.json without the keys of managed providers, which would beat the managed ones.
nlohmann::json without_keys(nlohmann::json models, const std::set<std::string> &managed_providers);
// The providers for which a managed models.json has a key.
std::set<std::string> providers_with_keys(const nlohmann::json &models);

// Resource paths of a settings.json that leave the config directory: inside they would mean another place. "extensions: ~/x"
std::vector<std::string> paths_that_leave(const nlohmann::json &settings);

// --- Decides about one path: the outcome table of the config sync (docs/concepts/config-sync.md), without any file.

// The host's file, compared with what the manifest recorded at the last sync.
enum class HostState { absent, unchanged, changed };
// The agent's file, compared with what the last sync left there.
enum class InsideState { absent, as_synced, other };

enum class SyncAction {
    leave,  // nothing to do
    copy,   // the host's version replaces it
    adopt,  // what is inside stays; the host's is remembered, so that a change of it is seen
    remove, // remove it, and take it out of the manifest
    forget, // stays inside and is the agent's from now on
};

// With class `once`, `inside` is `other` for every part of a tree that the agent changed (ConfigClasses::whole_of). `known`: the manifest
// knows this path; otherwise `host` is absent or changed, and `inside` absent or other.
SyncAction decide_file(FileClass file_class, bool known, HostState host, InsideState inside) noexcept;

} // namespace pi_agent
