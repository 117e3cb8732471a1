// In a build with test seams: which defence a test took out, and waiting at the points that a test names. In every other build all defences
// are on.
#include "common/seams/seams.hpp"

#include "test_seams.hpp"

#if PI_AGENT_TEST_SEAMS

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <sys/prctl.h>
#include <thread>

namespace pi_agent {

const bool has_test_seams = true;

bool defence_is_on(const char *name) noexcept
{
    const int before = errno; // callers ask between a call that fails and the text that says why
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

namespace {

bool is_wanted(const char *name)
{
    std::ifstream file("/etc/pi-agent/test-wait-at");
    for (std::string line; std::getline(file, line);)
        if (line == name) return true;
    return false;
}

} // namespace

void fault_point(const char *name) noexcept
{
    const int before = errno;
    if (is_wanted(name)) {
        std::array<char, 16> own_name{};
        prctl(PR_GET_NAME, own_name.data(), 0, 0, 0);
        prctl(PR_SET_NAME, name, 0, 0, 0);
        for (int round = 0; round < 30'000 && is_wanted(name); ++round)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        prctl(PR_SET_NAME, own_name.data(), 0, 0, 0);
    }
    errno = before;
}

} // namespace pi_agent

#else

namespace pi_agent {

const bool has_test_seams = false;

bool defence_is_on(const char * /*name*/) noexcept
{
    return true;
}

void fault_point(const char * /*name*/) noexcept {}

} // namespace pi_agent

#endif
