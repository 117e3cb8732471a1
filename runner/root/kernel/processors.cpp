// Asking with more and more room.
#include "runner/root/kernel/processors.hpp"

#include "common/base/error.hpp"

#include <cerrno>
#include <string>

namespace pi_agent {

std::vector<cpu_set_t> processors_of(pid_t process, const AskForProcessors &ask)
{
    constexpr std::size_t most = 256; // sets, for 262,144 processors: thirty times what Linux can be built for
    for (std::size_t count = 1; count <= most; count *= 2) {
        std::vector<cpu_set_t> sets(count);
        if (ask(process, count * sizeof(cpu_set_t), sets.data()) == 0) return sets;
        if (errno != EINVAL) break;
    }
    throw_errno("reading the processors of process " + std::to_string(process));
}

} // namespace pi_agent
