// The documents that a sync writes, what it does about each, and the packages that they name.
#include "runner/as_agent/writer.hpp"

namespace pi_agent {

namespace {

constexpr std::size_t packages_limit = 100; // the agent writes the settings, too

bool is_place(const std::string &path)
{
    return !path.empty() && path.size() < 1024 && path.find('\0') == std::string::npos && !has_odd_component(path);
}

// "npm:@scope/name@1.2": installed by a newer agent into its own directory, by an older one globally.
std::vector<std::string> npm_places(std::string name)
{
    name.erase(std::min(name.find('@', 1), name.size()));
    if (!is_place(name)) return {};
    return {".pi/agent/npm/node_modules/" + name, ".local/share/npm-global/lib/node_modules/" + name};
}

// "git:host/owner/name@ref", "https://host/owner/name.git", "git@host:owner/name"
std::vector<std::string> git_places(std::string url)
{
    if (const auto scheme = url.find("://"); scheme != std::string::npos) url.erase(0, scheme + 3);
    if (const auto user = url.find('@'); user < url.find('/')) url.erase(0, user + 1);
    url.erase(std::min(url.find_first_of("@#"), url.size()));
    if (const auto colon = url.find(':'); colon < url.find('/')) url[colon] = '/';
    if (url.ends_with(".git")) url.erase(url.size() - 4);
    if (!is_place(url) || std::count(url.begin(), url.end(), '/') < 2) return {};
    return {".pi/agent/git/" + url};
}

std::vector<std::string> places_of(const std::string &source)
{
    if (source.starts_with("npm:")) return npm_places(source.substr(4));
    if (source.starts_with("git:") && !source.starts_with("git://")) return git_places(source.substr(4));
    for (const char *scheme : {"https://", "http://", "ssh://", "git://"})
        if (source.starts_with(scheme)) return git_places(source);
    return {};
}

using nlohmann::json;

const json *member(const json *object, const std::string &key)
{
    if (object == nullptr || !object->is_object()) return nullptr;
    const auto found = object->find(key);
    return found == object->end() ? nullptr : &*found;
}

const json *pointer_to(const std::optional<json> &value) noexcept
{
    return value ? &*value : nullptr;
}

bool are_same(const json *one, const json *other)
{
    return one == nullptr || other == nullptr ? one == other : are_same_values(*one, *other);
}

bool is_object(const json *value) noexcept
{
    return value != nullptr && value->is_object();
}

std::set<std::string> keys_of(std::initializer_list<const json *> objects)
{
    std::set<std::string> keys;
    for (const json *object : objects)
        if (is_object(object))
            for (const auto &item : object->items())
                keys.insert(item.key());
    return keys;
}

// The inside without managed values, which nobody chose: where the agent left a value as it was written, the value that was chosen then.
json without_managed(const json &inside, const json *was_chosen, const json *was_written)
{
    json own = json::object();
    for (const auto &key : keys_of({&inside, was_chosen})) {
        const json *value = member(&inside, key);
        const json *chosen = member(was_chosen, key);
        const json *written = member(was_written, key);
        if (are_same(value, written))
            value = chosen;
        else if (is_object(value) && is_object(written))
            own[key] = without_managed(*value, chosen, written);
        if (value != nullptr && !own.contains(key)) own[key] = *value;
    }
    return own;
}

// For each key: the host's if the host changed it since the last sync, else the agent's. Without a last sync the host's, if it has one.
json merge_three_ways(const json &host, const json &inside, const json *base_host)
{
    json merged = json::object();
    for (const auto &key : keys_of({&host, &inside})) {
        const json *of_host = member(&host, key);
        const json *of_inside = member(&inside, key);
        const json *was_host = member(base_host, key);
        if (is_object(of_host) && is_object(of_inside)) {
            merged[key] = merge_three_ways(*of_host, *of_inside, was_host);
            continue;
        }
        const bool is_the_agents = base_host == nullptr ? of_host == nullptr : are_same(of_host, was_host);
        if (const json *chosen = is_the_agents ? of_inside : of_host; chosen != nullptr) merged[key] = *chosen;
    }
    return merged;
}

// The inside without what is still as the host had it at the last sync, key by key.
json without_the_hosts(const json &inside, const json *was_host)
{
    json own = json::object();
    for (const auto &[key, value] : inside.items()) {
        const json *was = member(was_host, key);
        if (value.is_object() && is_object(was)) {
            if (json rest = without_the_hosts(value, was); !rest.empty()) own[key] = std::move(rest);
        } else if (was == nullptr || value != *was) {
            own[key] = value;
        }
    }
    return own;
}

// "1.10.2" as numbers. Anything else gives no numbers, and compares as less than all.
std::vector<unsigned> version_numbers(const json *value)
{
    std::vector<unsigned> numbers;
    if (value == nullptr || !value->is_string()) return numbers;
    const auto &text = value->get_ref<const std::string &>();
    for (const char *at = text.data(), *end = at + text.size(); at < end;) {
        unsigned number = 0;
        const auto [next, error] = std::from_chars(at, end, number);
        if (error != std::errc()) break;
        numbers.push_back(number);
        if (next == end || *next != '.') break;
        at = next + 1;
    }
    return numbers;
}

void keep_the_agents_own(const DocumentVersions &versions, json &merged)
{
    const json *inside = pointer_to(versions.inside);
    for (const char *key : {"trackingId", "deviceId"}) {
        if (const json *own = member(inside, key); own != nullptr && member(&versions.host, key) == nullptr) merged[key] = *own;
    }
    constexpr const char *version = "lastChangelogVersion";
    const json *of_inside = member(inside, version);
    const json *of_host = member(&versions.host, version);
    const json *larger = version_numbers(of_inside) < version_numbers(of_host) || of_inside == nullptr ? of_host : of_inside;
    if (larger != nullptr) merged[version] = *larger;
}

bool is_oauth(const json *entry)
{
    const json *type = member(entry, "type");
    return type != nullptr && *type == "oauth";
}

// What stays of one entry; none when it is removed.
const json *choose_credential(const json *host, const json *inside, const json *was_host, bool always_oauth)
{
    if (host == nullptr) return are_same(inside, was_host) ? nullptr : inside;
    const bool rotates = always_oauth || is_oauth(host) || is_oauth(inside);
    if (!rotates) return host;
    if (was_host == nullptr) return inside != nullptr ? inside : host;
    return are_same(host, was_host) ? inside : host;
}

} // namespace

std::optional<std::string> source_of_resource(const nlohmann::json &entry)
{
    if (!entry.is_object()) return entry.is_string() ? std::optional(entry.get<std::string>()) : std::nullopt;
    const auto named = entry.find("source");
    return named != entry.end() && named->is_string() ? std::optional(named->get<std::string>()) : std::nullopt;
}

std::vector<AgentPackage> packages_of(const nlohmann::json &settings)
{
    std::vector<AgentPackage> found;
    const auto list = settings.find("packages");
    if (list == settings.end() || !list->is_array()) return found;
    for (const auto &item : *list) {
        const auto source = source_of_resource(item);
        if (!source || found.size() == packages_limit) continue;
        if (auto places = places_of(*source); !places.empty()) found.push_back({*source, std::move(places)});
    }
    return found;
}

json merge_document(const std::string &name, FileClass file_class, const DocumentVersions &versions)
{
    json merged = versions.host;
    if (file_class == FileClass::once) file_class = FileClass::seed; // a document has no whole, only keys
    if (file_class != FileClass::mirror) {
        merged =
            without_managed(versions.inside.value_or(json::object()), pointer_to(versions.base_chosen), pointer_to(versions.base_written));
        if (file_class == FileClass::seed) merged = merge_three_ways(versions.host, merged, pointer_to(versions.base_host));
        if (file_class == FileClass::never) merged = without_the_hosts(merged, pointer_to(versions.base_host));
    }
    if (name == "settings.json") keep_the_agents_own(versions, merged);
    return merged;
}

json merge_credentials(const std::string &name, FileClass file_class, const DocumentVersions &versions,
                       const std::set<std::string> &managed_providers)
{
    json merged = json::object();
    if (file_class == FileClass::once) file_class = FileClass::seed;
    for (const auto &provider : keys_of({&versions.host, pointer_to(versions.inside)})) {
        if (name == "auth.json" && managed_providers.contains(provider)) continue;
        const json *of_host = member(&versions.host, provider);
        const json *of_inside = member(pointer_to(versions.inside), provider);
        const json *was_host = member(pointer_to(versions.base_host), provider);
        const json *chosen = is_copied(file_class) ? of_host : of_inside;
        if (file_class == FileClass::seed) chosen = choose_credential(of_host, of_inside, was_host, name == "mcp-auth.json");
        if (file_class == FileClass::never && are_same(of_inside, was_host)) chosen = nullptr;
        if (chosen != nullptr) merged[provider] = *chosen;
    }
    return merged;
}

json without_keys_of(json credentials, const std::set<std::string> &held_providers)
{
    for (const auto &provider : held_providers)
        if (!is_oauth(member(&credentials, provider))) credentials.erase(provider);
    return credentials;
}

json without_keys(json models, const std::set<std::string> &managed_providers)
{
    const auto providers = models.find("providers");
    if (providers == models.end() || !providers->is_object()) return models;
    for (const auto &provider : managed_providers) {
        if (const auto entry = providers->find(provider); entry != providers->end() && entry->is_object()) entry->erase("apiKey");
    }
    return models;
}

std::set<std::string> providers_with_keys(const json &models)
{
    std::set<std::string> found;
    const json *providers = member(&models, "providers");
    if (!is_object(providers)) return found;
    for (const auto &item : providers->items())
        if (member(&item.value(), "apiKey") != nullptr) found.insert(item.key());
    return found;
}

std::vector<std::string> paths_that_leave(const json &settings)
{
    constexpr std::array keys = {"extensions", "skills", "prompts", "themes", "packages"};
    std::vector<std::string> found;
    for (const char *key : keys) {
        const json *list = member(&settings, key);
        if (list == nullptr || !list->is_array()) continue;
        for (const auto &item : *list) {
            const auto source = source_of_resource(item);
            if (!source) continue;
            std::string path = *source;
            if (!path.empty() && (path[0] == '-' || path[0] == '+' || path[0] == '!'))
                path.erase(0, 1); // patterns that switch one on or off
            const bool leaves = path.starts_with('/') || path.starts_with('~') || path.starts_with("../") || path == ".." ||
                                path.find("/../") != std::string::npos;
            if (leaves) found.push_back(std::string(key) + ": " + path);
        }
    }
    return found;
}

SyncAction decide_file(FileClass file_class, bool known, HostState host, InsideState inside) noexcept
{
    if (!known && (host == HostState::absent || !is_copied(file_class))) return SyncAction::leave;
    if (file_class == FileClass::agent) return SyncAction::forget;
    if (file_class == FileClass::never) return SyncAction::remove;
    if (file_class == FileClass::once) {
        if (inside == InsideState::other) return SyncAction::leave;
        if (host == HostState::absent) return inside == InsideState::absent ? SyncAction::forget : SyncAction::remove;
        return inside == InsideState::absent || host == HostState::changed ? SyncAction::copy : SyncAction::leave;
    }
    const bool mirrors = file_class == FileClass::mirror;
    if (host == HostState::absent) return !mirrors && inside == InsideState::other ? SyncAction::forget : SyncAction::remove;
    if (mirrors && known && host == HostState::unchanged && inside == InsideState::as_synced) return SyncAction::leave;
    if (mirrors || inside == InsideState::absent) return SyncAction::copy;
    if (!known) return SyncAction::adopt;
    return host == HostState::changed ? SyncAction::copy : SyncAction::leave;
}

} // namespace pi_agent
