// Finds out what of class `once` the agent has changed.
#include "runner/as_agent/once_trees.hpp"

#include <algorithm>

namespace pi_agent {

std::string_view path_in_config(std::string_view path) noexcept
{
    const std::string_view top = agent_directory;
    return is_within(path, top) && path.size() > top.size() + 1 ? path.substr(top.size() + 1) : std::string_view();
}

std::string OnceTrees::whole_of(const std::string &path) const
{
    return join_path(agent_directory, classes_.whole_of(path_in_config(path)));
}

void OnceTrees::take(const ListedEntry &entry, std::uint64_t number, const ManifestEntry *known)
{
    const bool is_directory = entry.kind == EntryKind::directory;
    const bool same_kind = known != nullptr && known->is_directory == is_directory;
    const bool is_whole = same_kind && (is_directory || known->recorded != 0); // otherwise a killed sync left it: not the agent's
    InsideState inside = InsideState::absent;
    if (is_directory && inside_.look(entry.path).get() >= 0)
        inside = InsideState::as_synced;
    else if (!is_directory && (known == nullptr || is_whole))
        inside = inside_.state(entry.path, known);
    const bool is_as_known = is_whole && known->host == entry.facts;
    entries_.push_back({entry, number, known != nullptr, is_as_known ? HostState::unchanged : HostState::changed, inside});
    if (!is_directory && (known == nullptr ? inside != InsideState::absent : is_whole && inside != InsideState::as_synced))
        changed_.insert(whole_of(entry.path));
}

void OnceTrees::judge(Manifest &manifest, const std::vector<std::string> &unreadable)
{
    for (const auto &[path, entry] : manifest.entries()) {
        const bool is_once = classes_.of(path_in_config(path)) == FileClass::once && !path_in_config(path).empty();
        if (!is_once || entry.was_seen || entry.is_directory || entry.recorded == 0) continue;
        if (inside_.state(path, &entry) != InsideState::as_synced) changed_.insert(whole_of(path));
    }
    // A directory that the agent removed completely counts as one that it never had.
    for (const auto &one : entries_)
        if (one.entry.kind == EntryKind::directory && one.inside == InsideState::absent && whole_of(one.entry.path) == one.entry.path)
            changed_.erase(one.entry.path);
    for (const auto &path : unreadable)
        if (!path_in_config(path).empty() && classes_.of(path_in_config(path)) == FileClass::once && whole_of(path) == path)
            changed_.insert(path);
}

InsideState OnceTrees::state_of(const std::string &path, InsideState itself) const
{
    return changed_.contains(whole_of(path)) ? InsideState::other : itself;
}

std::vector<std::string> OnceTrees::left_behind() const
{
    std::set<std::string> found;
    for (const auto &one : entries_) {
        const std::string whole = whole_of(one.entry.path);
        if (one.entry.kind == EntryKind::file && whole != one.entry.path && one.host == HostState::changed && changed_.contains(whole))
            found.insert(whole);
    }
    return {found.begin(), found.end()};
}

} // namespace pi_agent
