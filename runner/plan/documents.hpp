// The documents that a sync writes, and what it does about each.
#pragma once

#include "common/policy/config_classes.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pi_agent {

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

// Where the agent keeps the sessions of a directory, in its config directory: the agent's own way to name it.
std::string sessions_of(const std::string &directory);

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
