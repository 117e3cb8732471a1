// Questions that the kernel answers with "wrong argument", and a filter with "not permitted" or "no such call".
#include "runner/root/mount/mount_calls.hpp"

#include <array>
#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr long wrong = -1; // as a descriptor, and as flags

struct Question {
    const char *name;
    long number;
    std::array<long, 5> arguments;
};

} // namespace

std::vector<std::string> refused_mount_calls(const AsRoot & /*root*/)
{
    static const char nowhere[] = "";
    const auto empty = reinterpret_cast<long>(nowhere); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast): an argument of syscall(2)
    const std::array<Question, 11> questions = {{{"pivot_root", SYS_pivot_root, {empty, empty}},
                                                 {"mount", SYS_mount, {empty, empty, empty, 0, 0}},
                                                 {"umount2", SYS_umount2, {empty, wrong}},
                                                 {"open_tree", SYS_open_tree, {wrong, empty, wrong}},
                                                 {"move_mount", SYS_move_mount, {wrong, empty, wrong, empty, wrong}},
                                                 {"fsopen", SYS_fsopen, {empty, wrong}},
                                                 {"fsconfig", SYS_fsconfig, {wrong, wrong, 0, 0, 0}},
                                                 {"fsmount", SYS_fsmount, {wrong, wrong, wrong}},
                                                 {"mount_setattr", SYS_mount_setattr, {wrong, empty, 0, 0, 0}},
                                                 {"setns", SYS_setns, {wrong, wrong}},
                                                 {"unshare", SYS_unshare, {wrong}}}};
    std::vector<std::string> refused;
    for (const auto &[name, number, arguments] : questions)
        if (syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]) < 0 &&
            (errno == EPERM || errno == ENOSYS))
            refused.emplace_back(name);
    return refused;
}

} // namespace pi_agent
