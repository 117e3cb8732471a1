// What tests draw at random: by a seed that a run prints and takes, and how much of it.
#pragma once

#include <cstdlib>
#include <ctime>
#include <string>

namespace pi_agent::test {

inline unsigned seed_of_run()
{
    const char *said = std::getenv("PI_AGENT_SEED"); // NOLINT(concurrency-mt-unsafe)
    return said == nullptr ? static_cast<unsigned>(std::time(nullptr)) : static_cast<unsigned>(std::stoul(said));
}

// All of it with `./check --full`, a tenth otherwise: another tenth with each seed.
inline int drawn_of(int count)
{
    const char *full = std::getenv("PI_AGENT_FULL"); // NOLINT(concurrency-mt-unsafe)
    return full != nullptr && *full != '\0' ? count : count / 10;
}

} // namespace pi_agent::test
