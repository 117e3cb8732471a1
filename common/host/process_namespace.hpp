// Which namespace a process is in (namespaces(7)).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace pi_agent {

struct NamespaceId {
    dev_t device;
    ino_t inode;
    friend bool operator==(const NamespaceId &, const NamespaceId &) = default;
};

// `process`: a number, "self", or "1" for the host's. None when it cannot be seen, or there is no such kind; then errno says why.
inline std::optional<NamespaceId> namespace_of(const std::string &process, const std::string &kind)
{
    struct stat facts {};
    if (stat(("/proc/" + process + "/ns/" + kind).c_str(), &facts) != 0) return std::nullopt;
    return NamespaceId{facts.st_dev, facts.st_ino};
}

// The host's own of these kinds ("mnt", "pid", …): their inodes, as text. Throws SystemFailure where one cannot be seen.
std::map<std::string, std::string> host_namespaces(const std::vector<std::string> &kinds);

} // namespace pi_agent
