// The command line of a container engine on its way from the runner (write_arguments() in sandbox.hpp).
#pragma once

#include "common/base/channel.hpp"

namespace pi_agent {

// The arguments that the first program of the unit was given. Throws Failure(denied) where `fd` is not such a file: the program was run by
// hand.
inline std::vector<std::string> read_engine_arguments(FdRef fd)
{
    constexpr off_t limit = off_t{1} << 20U; // bytes
    struct stat facts {};
    if (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0 || facts.st_size > limit)
        throw Failure(FailureKind::by_hand, "pi-agent's runner starts this program; do not run it by hand");
    std::string text(static_cast<std::size_t>(facts.st_size), '\0');
    if (pread(fd.get(), text.data(), text.size(), 0) != facts.st_size) throw_errno("reading the engine's arguments");
    if (text.back() != '\0') throw Failure(ExitStatus::denied, "this program is run by pi-agent's runner, with whole arguments");
    std::vector<std::string> arguments;
    for (std::size_t start = 0; start < text.size(); start = text.find('\0', start) + 1)
        arguments.emplace_back(text.c_str() + start);
    return arguments;
}

} // namespace pi_agent
