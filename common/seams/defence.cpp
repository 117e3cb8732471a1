// Every defence is on; a build with test seams reads which one a test took out.
#include "common/seams/seams.hpp"

#include "test_seams.hpp"

#if PI_AGENT_TEST_SEAMS

#include <cerrno>
#include <fstream>
#include <map>
#include <string>

namespace pi_agent {

const bool has_test_seams = true;

bool defence_is_on(const char *name) noexcept
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

#else

namespace pi_agent {

const bool has_test_seams = false;

bool defence_is_on(const char * /*name*/) noexcept
{
    return true;
}

} // namespace pi_agent

#endif
