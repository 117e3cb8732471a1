// What a process does to itself and to others that it knows: handles, memory, keyring, arguments, chance.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

// --- Processes by descriptor, which unlike a number never comes to mean another one (pidfd_open(2)).

// None when there is no such process (errno). Readable (poll(2)) once it has ended.
UniqueFd open_process(pid_t pid);

bool has_ended(FdRef process);

// One that has ended is fine. Throws SystemFailure, naming `what` was being done.
void signal_process(FdRef process, int number, const char *what);

// --- Memory that a process took for its start and does not need while it waits.

// Gives back to the kernel what the allocator keeps free (malloc_trim(3)) and the pages of code and constants, which are read again from
// their files where they are needed (madvise(2), MADV_DONTNEED of private mappings without writable pages; dl_iterate_phdr(3)). To be
// called by a process that will wait long, with no other thread running. Costs some tenths of a millisecond; cannot fail, and changes
// nothing but memory.
void release_start_up_memory() noexcept;

// Does so once, when the wait has taken a second: what is over before that reads nothing again.
class StartUpMemory {
public:
    void wait_begins() noexcept { due_ = in_seconds(1); }
    // For poll(2), where it would wait for `milliseconds` (-1: without end).
    [[nodiscard]] int patience(int milliseconds) const;
    // To be called whenever poll has returned.
    void look() noexcept;

private:
    std::optional<Deadline> due_;
};

// --- The session keyring that a process inherits of whoever started it (session-keyring(7)).

// Leaves it for a new one. 0, or an errno. Also 0 where nobody has keyrings: in a kernel without, and behind a system-call filter that
// answers every question about them with EPERM, as docker's does. Filters are inherited, so the one of this process holds what it starts,
// too.
int leave_session_keyring() noexcept;

// --- What a forked child does before it becomes another program. Nothing is thrown; each false with the reason in errno.

// These become descriptors 0, 1, 2 and so on, whatever numbers they have now. All others stay open.
bool place_descriptors(std::vector<int> fds) noexcept;

// No signal is blocked any more; and what is done about each is the default.
bool unblock_signals() noexcept;
bool restore_signals() noexcept;

// --- Arguments and environment in the form that execve(2) and posix_spawn(3) want.

// Borrowed from `texts`, which must live and stay as it is; ends with a null pointer. Made before a fork: it allocates.
inline std::vector<char *> exec_pointers(const std::vector<std::string> &texts)
{
    std::vector<char *> list;
    list.reserve(texts.size() + 1);
    for (const auto &text : texts)
        list.push_back(const_cast<char *>(text.c_str())); // NOLINT(cppcoreguidelines-pro-type-const-cast): execve(2) does not write
    list.push_back(nullptr);
    return list;
}

// --- Names that nobody can guess.

// `bytes` random bytes (at most 16) of the kernel's (getrandom(2)), as twice as many hexadecimal digits. Throws SystemFailure.
std::string random_hex(std::size_t bytes);

} // namespace pi_agent
