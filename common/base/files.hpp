// What a process does with files, with others, and to itself.
#pragma once

#include "common/base/channel.hpp"

#include <dirent.h>
#include <sys/types.h>

#include <functional>
#include <memory>

namespace pi_agent {

// --- What a failed call proves: that the file does not exist, or nothing.

// By errno. Throws SystemFailure for any reason other than ENOENT: a process without memory or descriptors cannot know what exists.
// `also`: other errors that mean "gone": ENODEV for a control group, ESRCH for a process.
void require_gone(const std::string &action, int also = 0);

// Whether `directory` has that name, whatever it leads to. Throws as above.
bool has_name(FdRef directory, const std::string &name, const std::string &action);
// The same for a path on the host.
bool path_exists(const std::string &path);

// Opens (common/base/channel.hpp) a file that may be gone; then empty. Throws as above.
UniqueFd open_if_there(const std::string &action, FdRef directory, const std::string &name, int flags);

inline bool is_same_file(const struct stat &one, const struct stat &other) noexcept
{
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// --- Reads and writes whole files through descriptors, with bounds.

// From the beginning, wherever the descriptor stands. Throws Failure(configuration) if it has more than `limit` bytes; `name` is for
// messages.
std::string read_whole(FdRef fd, std::size_t limit, const std::string &name);

// At the descriptor's position. Throws SystemFailure.
void write_whole(FdRef fd, std::string_view bytes, const std::string &name);

// --- The entries of an open directory, one by one.

// readdir(3) of a directory that is open, without "." and "..". It stays with the directory, even if that is moved.
class DirectoryStream {
public:
    // Takes over the descriptor. Converts to false if `directory` is not open or cannot be listed; errno says why.
    explicit DirectoryStream(UniqueFd directory) noexcept;

    // Opens the same directory again: `directory` keeps its owner and its position.
    [[nodiscard]] static DirectoryStream reopened(FdRef directory) noexcept;

    explicit operator bool() const noexcept { return stream_ != nullptr; }

    // The directory; valid as long as this object.
    [[nodiscard]] FdRef fd() const noexcept { return FdRef(dirfd(stream_.get())); }

    // The next entry, valid until the next call; nullptr at the end with errno 0, and on failure with the reason in errno.
    [[nodiscard]] const dirent *next() noexcept;

private:
    struct Close {
        void operator()(DIR *stream) const noexcept { closedir(stream); }
    };

    std::unique_ptr<DIR, Close> stream_;
};

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

// Arguments and environment in the form for execve(2) and posix_spawn(3): borrowed from `texts`, which must not change; ends with a null
// pointer. Make it before a fork, because it allocates.
inline std::vector<char *> exec_pointers(const std::vector<std::string> &texts)
{
    std::vector<char *> list;
    list.reserve(texts.size() + 1);
    for (const auto &text : texts)
        list.push_back(const_cast<char *>(text.c_str())); // NOLINT(cppcoreguidelines-pro-type-const-cast): execve(2) does not write
    list.push_back(nullptr);
    return list;
}

// `bytes` random bytes (at most 16) from the kernel (getrandom(2)), as twice as many hexadecimal digits. Throws SystemFailure.
std::string random_hex(std::size_t bytes);

} // namespace pi_agent
