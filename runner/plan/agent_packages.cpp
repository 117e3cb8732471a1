// Where the agent keeps a package, by its source: as its own package manager names it.
#include "runner/plan/agent_packages.hpp"

#include "common/base/text.hpp"

#include <algorithm>

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
    const auto user = url.find('@');
    if (user < url.find('/')) url.erase(0, user + 1);
    url.erase(std::min(url.find_first_of("@#"), url.size()));
    const auto colon = url.find(':');
    if (colon < url.find('/')) url[colon] = '/';
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

} // namespace pi_agent
