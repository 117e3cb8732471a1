// Reading memory.peak and cpu.stat of a control group (Documentation/admin-guide/cgroup-v2.rst).
#include "runner/root/kernel/unit_usage.hpp"

#include <fstream>
#include <string>

namespace pi_agent {

UnitUsage usage_of(const ControlGroup &group)
{
    UnitUsage usage;
    if (!group.is_unified) return usage;
    std::uint64_t value = 0;
    std::ifstream memory(group.path + "/memory.peak");
    if (memory >> value) usage.memory_peak = value;
    std::ifstream processor(group.path + "/cpu.stat");
    for (std::string name; processor >> name >> value;)
        if (name == "usage_usec") usage.cpu_usec = value;
    return usage;
}

} // namespace pi_agent
