// Reading the file of an engine's arguments.
#include "runner/root/method/engine_arguments.hpp"

namespace pi_agent {

namespace {

constexpr std::size_t arguments_limit = std::size_t{1} << 20U; // bytes

} // namespace

std::vector<std::string> read_engine_arguments(FdRef fd)
{
    struct stat facts {};
    if (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0 ||
        static_cast<std::size_t>(facts.st_size) > arguments_limit)
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
