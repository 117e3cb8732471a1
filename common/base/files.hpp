// Whole files, what a directory holds, and whether something is there at all.
#pragma once

#include "common/base/fd.hpp"

#include <dirent.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace pi_agent {

// --- What a failed call says of what it looked for: that it is not there, or nothing.

// By errno. Throws SystemFailure for any other reason than ENOENT: who is short of memory or descriptors does not know what is there.
// `also`: the kernel's word for what went away while it was looked at, ENODEV of a control group, ESRCH of a process.
void require_gone(const std::string &action, int also = 0);

// Whether `directory` has that name, wherever it may lead. Throws as above.
bool has_name(FdRef directory, const std::string &name, const std::string &action);
// The same for a path of the host's.
bool path_exists(const std::string &path);

// Opens (common/base/fd.hpp) what may be gone: none then. Throws as above.
UniqueFd open_if_there(const std::string &action, FdRef directory, const std::string &name, int flags);

inline bool is_same_file(const struct stat &one, const struct stat &other) noexcept
{
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// --- Reads and writes whole files through descriptors, with bounds.

// From the beginning, wherever the descriptor stands. Throws Failure(configuration) when it holds more than `limit` bytes; `name` is for
// messages.
std::string read_whole(FdRef fd, std::size_t limit, const std::string &name);

// At the descriptor's position. Throws SystemFailure.
void write_whole(FdRef fd, std::string_view bytes, const std::string &name);

// Compares two regular files from their beginnings; `step` is called every 8 MiB.
bool have_same_bytes(FdRef one, FdRef other, const std::function<void()> &step);

// --- The entries of an open directory, one after the other.

// readdir(3) of a directory that is open, without "." and "..". It is bound to the directory itself, wherever that is moved meanwhile.
class DirectoryStream {
public:
    // Takes the descriptor over. Test it: it is no stream when `directory` is not open or cannot be listed; errno says why.
    explicit DirectoryStream(UniqueFd directory) noexcept;

    // Of the same directory, opened once more: `directory` stays its owner's and keeps its own position.
    [[nodiscard]] static DirectoryStream reopened(FdRef directory) noexcept;

    explicit operator bool() const noexcept { return stream_ != nullptr; }

    // The directory, as long as this lives.
    [[nodiscard]] FdRef fd() const noexcept { return FdRef(dirfd(stream_.get())); }

    // The next entry, valid until the next call; nullptr at the end, with errno 0, and where it cannot go on, with the reason in errno.
    [[nodiscard]] const dirent *next() noexcept;

private:
    struct Close {
        void operator()(DIR *stream) const noexcept { closedir(stream); }
    };

    std::unique_ptr<DIR, Close> stream_;
};

} // namespace pi_agent
