// Looking at the namespaces of PID 1.
#include "common/host/process_namespace.hpp"

#include "common/base/error.hpp"

namespace pi_agent {

std::map<std::string, std::string> host_namespaces(const std::vector<std::string> &kinds)
{
    std::map<std::string, std::string> found;
    for (const auto &kind : kinds) {
        const auto host = namespace_of("1", kind);
        if (!host) throw_errno("reading the host's " + kind + " namespace");
        found[kind] = std::to_string(host->inode);
    }
    return found;
}

} // namespace pi_agent
