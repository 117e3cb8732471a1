// Writing and reading the file of an engine's arguments.
#include "runner/root/method/engine_arguments.hpp"

#include "common/base/error.hpp"

#include <linux/close_range.h>
#include <sys/mman.h>

namespace pi_agent {

namespace {

constexpr std::size_t arguments_limit = std::size_t{1} << 20U; // bytes

} // namespace

UniqueFd write_arguments(const std::string &program, const std::vector<std::string> &arguments)
{
    std::string text;
    for (const auto &argument : arguments)
        text.append(argument).push_back('\0');
    UniqueFd file = UniqueFd::adopt(memfd_create(program.c_str(), MFD_CLOEXEC));
    if (!file || pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        throw_errno("writing " + program + "'s arguments");
    return file;
}

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

void keep_descriptors_to(int last)
{
    const UniqueFd null = UniqueFd::adopt(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0) throw_errno("opening /dev/null");
    if (close_range(static_cast<unsigned>(last) + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) throw_errno("closing descriptors");
}

} // namespace pi_agent
