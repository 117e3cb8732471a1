// Making directories in the agent's home.
#include "runner/as_agent/mount_points.hpp"

#include "common/host/beneath.hpp"

#include <algorithm>
#include <fcntl.h>

namespace pi_agent {

namespace {

// Beside what every home is given (runner/as_agent/seed_defaults.hpp).
bool holds_own(FdRef directory, FdRef defaults, const std::string &place)
{
    const UniqueFd given = find_beneath(defaults, place, O_RDONLY | O_DIRECTORY);
    std::vector<std::string> names = given ? names_in(given) : std::vector<std::string>();
    std::sort(names.begin(), names.end());
    return find_name(directory, [&](const std::string &name) { return !std::binary_search(names.begin(), names.end(), name); });
}

} // namespace

std::vector<std::string> make_mount_points(FdRef agent_home, FdRef defaults, const std::vector<std::string> &places, std::size_t looked_at)
{
    std::vector<std::string> filled;
    for (std::size_t index = 0; index < places.size(); ++index) {
        const UniqueFd made = ensure_directory_beneath(agent_home, places[index]);
        if (index < looked_at && holds_own(made, defaults, places[index])) filled.push_back(places[index]);
    }
    return filled;
}

} // namespace pi_agent
