// What a process does to itself and to others: pidfds, memory, keyring, arguments, random names.
#pragma once

#include "common/base/channel.hpp"

#include <sys/types.h>

namespace pi_agent {

// --- Processes by descriptor, which unlike a number never means another process later (pidfd_open(2)).

// Empty if there is no such process (errno). Readable (poll(2)) once it has ended.
UniqueFd open_process(pid_t pid);

bool has_ended(FdRef process);

// Accepts a process that has ended. Throws SystemFailure that names `what`.
void signal_process(FdRef process, int number, const char *what);

// --- Memory that a process needed at its start and does not need while it waits.

// Gives back to the kernel what the allocator keeps free (malloc_trim(3)), and the pages of code and constants. Where these are needed
// again, they are read from their files (madvise(2), MADV_DONTNEED of private mappings without writable pages; dl_iterate_phdr(3)). For a
// process that will wait long and has no other thread. Takes some tenths of a millisecond, cannot fail, and changes only memory.
void release_start_up_memory() noexcept;

// Does it once, after a wait of one second, so that short waits read nothing again.
class StartUpMemory {
public:
    void wait_begins() noexcept { due_ = in_seconds(1); }
    // For poll(2) with a timeout of `milliseconds` (-1: none).
    [[nodiscard]] int patience(int milliseconds) const;
    // Call it whenever poll has returned.
    void look() noexcept;

private:
    std::optional<Deadline> due_;
};

// --- The session keyring that a process inherits from its parent (session-keyring(7)).

// Replaces it by a new one. Returns 0 or an errno. Also 0 where nobody has keyrings: in a kernel without them, and behind a system-call
// filter that answers EPERM, like docker's. Children inherit filters, so this is true of them, too.
int leave_session_keyring() noexcept;

// --- What a forked child does before it becomes another program. Nothing throws; false means failure, with the reason in errno.

// Makes these descriptors 0, 1, 2 and so on, whatever their numbers are now. All others stay open.
bool place_descriptors(std::vector<int> fds) noexcept;

// Unblocks every signal and restores every default action.
bool unblock_signals() noexcept;
bool restore_signals() noexcept;

// --- Arguments and environment in the form for execve(2) and posix_spawn(3).

// Borrowed from `texts`, which must not change; ends with a null pointer. Make it before a fork, because it allocates.
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

// `bytes` random bytes (at most 16) from the kernel (getrandom(2)), as twice as many hexadecimal digits. Throws SystemFailure.
std::string random_hex(std::size_t bytes);

} // namespace pi_agent
