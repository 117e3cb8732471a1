// Whole files, the entries of a directory, and whether something exists.
#pragma once

#include "common/base/fd.hpp"

#include <dirent.h>
#include <functional>
#include <memory>
#include <string_view>

namespace pi_agent {

// --- What a failed call proves: that the file does not exist, or nothing.

// By errno. Throws SystemFailure for any reason other than ENOENT: a process without memory or descriptors cannot know what exists.
// `also`: other errors that mean "gone": ENODEV for a control group, ESRCH for a process.
void require_gone(const std::string &action, int also = 0);

// Whether `directory` has that name, whatever it leads to. Throws as above.
bool has_name(FdRef directory, const std::string &name, const std::string &action);
// The same for a path on the host.
bool path_exists(const std::string &path);

// Opens (common/base/fd.hpp) a file that may be gone; then empty. Throws as above.
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

} // namespace pi_agent
