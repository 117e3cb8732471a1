// Reading which defence a test took out; empty in every other build.
#include "common/defence.hpp"

#if defined(PI_AGENT_TEST_SEAMS)

#include <fstream>
#include <string>

namespace pi_agent {

bool defence_is_on(const char *name)
{
    std::ifstream file("/etc/pi-agent/test-without");
    std::string line;
    while (std::getline(file, line))
        if (line == name) return false;
    return true;
}

} // namespace pi_agent

#endif
