// Trees that are brought in once (class `once`): the user's as long as the agent changes nothing in one, then the agent's, as a whole.
#pragma once

#include "common/policy/config_classes.hpp"
#include "runner/as_agent/manifest.hpp"

#include <set>
#include <string>
#include <vector>

namespace pi_agent {

// An entry of the listing; `number` of a file.
struct ListedOnce {
    ListedEntry entry;
    std::uint64_t number;
    bool known;
    HostState host;
    InsideState inside;
};

// Paths are relative to the agent's home. Only looks.
class OnceTrees {
public:
    OnceTrees(const ConfigClasses &classes, LastDirectory &inside) : classes_(classes), inside_(inside) {}

    void take(const ListedEntry &entry, std::uint64_t number, const ManifestEntry *known);
    // Call it when all entries are taken. Finds out what the agent changed. `unreadable`: what could not be listed completely.
    void judge(Manifest &manifest, const std::vector<std::string> &unreadable);

    [[nodiscard]] const std::vector<ListedOnce> &entries() const noexcept { return entries_; }
    // The state that counts for one of these, after judge(): when the agent changed a part, all of it counts as changed.
    [[nodiscard]] InsideState state_of(const std::string &path, InsideState itself) const;
    // The trees of which the user has something new that stays outside.
    [[nodiscard]] std::vector<std::string> left_behind() const;

private:
    [[nodiscard]] std::string whole_of(const std::string &path) const;

    const ConfigClasses &classes_;
    LastDirectory &inside_;
    std::vector<ListedOnce> entries_;
    std::set<std::string> changed_; // wholes
};

// The path within the config directory; empty for a path elsewhere, and for that directory itself.
std::string_view path_in_config(std::string_view path) noexcept;

} // namespace pi_agent
