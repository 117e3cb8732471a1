// What the kernel shows of owners that a user namespace does not hold (user_namespaces(7)).
#include "common/host/user_namespace.hpp"

#include <cstdint>
#include <fstream>
#include <sys/stat.h>

namespace pi_agent {

namespace {

bool is_of_the_host()
{
    std::uint64_t inside = 1, outside = 1, count = 0;
    std::ifstream map("/proc/self/uid_map"); // empty in one that nobody has given numbers
    if (!map.is_open()) return true;
    return map >> inside >> outside >> count && inside == 0 && outside == 0 && count == UINT32_MAX;
}

uid_t nobody()
{
    uid_t uid = 65534;
    std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
    return uid;
}

} // namespace

std::optional<std::string> problem_of_user_namespace()
{
    struct stat program {};
    if (::stat("/proc/self/exe", &program) != 0 || program.st_uid != nobody() || is_of_the_host()) return std::nullopt;
    return "this process is in a user namespace that does not hold the host's root (unshare, podman unshare, bwrap and their like make "
           "such), "
           "so sudo cannot work, and nobody can tell what is root's; use an ordinary shell of this host";
}

} // namespace pi_agent
