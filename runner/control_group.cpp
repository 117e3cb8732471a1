// Reading /proc/self/cgroup.
#include "runner/control_group.hpp"

namespace pi_agent {

std::optional<ControlGroup> find_sibling_group(std::istream &groups, const std::string &own_unit, const std::string &sibling)
{
    const std::string own = "/" + own_unit;
    for (std::string line; std::getline(groups, line);) {
        const std::size_t path = line.find('/');
        if (path == std::string::npos || line.size() < path + own.size() || line.compare(line.size() - own.size(), own.size(), own) != 0)
            continue;
        const bool named = line.find(":name=systemd:") < path;
        if (!named && line.compare(0, path, "0::") != 0) continue;
        const std::string group = line.substr(path, line.size() - own.size() - path) + "/" + sibling;
        return ControlGroup{(named ? "/sys/fs/cgroup/systemd" : "/sys/fs/cgroup") + group, !named};
    }
    return std::nullopt;
}

} // namespace pi_agent
