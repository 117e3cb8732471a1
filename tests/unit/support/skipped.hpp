// What this place cannot test: told so that the check counts the case as skipped, with its reason, and never as passed.
#pragma once

#include <cstdio>
#include <doctest/doctest.h>
#include <string>

namespace pi_agent::test {

// For what turns out while the case runs; the rest of the case is left out, so the caller returns. tests/machine/results.py reads the line.
inline void skipped(const std::string &reason)
{
    std::printf("[skipped] %s | %s\n", doctest::getContextOptions()->currentTest->m_name, reason.c_str());
    std::fflush(stdout);
}

} // namespace pi_agent::test
