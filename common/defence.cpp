// Reading which defence a test took out; empty in every other build.
#include "common/defence.hpp"

#if defined(PI_AGENT_TEST_SEAMS)

#include <cerrno>
#include <fstream>
#include <string>

namespace pi_agent {

bool defence_is_on(const char *name)
{
    const int before = errno; // it is asked between a call that fails and the text that tells why
    std::ifstream file("/etc/pi-agent/test-without");
    std::string line;
    bool is_on = true;
    while (is_on && std::getline(file, line))
        is_on = line != name;
    errno = before;
    return is_on;
}

} // namespace pi_agent

#endif
