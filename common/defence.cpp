// Reading which defence a test took out; empty in every other build.
#include "common/defence.hpp"

#if PI_AGENT_TEST_SEAMS

#include <cerrno>
#include <fstream>
#include <map>
#include <string>

namespace pi_agent {

bool defence_is_on(const char *name)
{
    const int before = errno; // it is asked between a call that fails and the text that tells why
    static std::map<std::string, bool> answers;
    errno = 0;
    std::ifstream file("/etc/pi-agent/test-without");
    const bool has_descriptor = errno != EMFILE; // else what was said before still holds: an attack may have used them up
    bool &is_on = answers.try_emplace(name, true).first->second;
    if (has_descriptor) is_on = true;
    for (std::string line; has_descriptor && is_on && std::getline(file, line);)
        is_on = line != name;
    errno = before;
    return is_on;
}

} // namespace pi_agent

#endif
