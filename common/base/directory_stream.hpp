// The entries of an open directory, one after the other.
#pragma once

#include "common/base/fd.hpp"

#include <dirent.h>
#include <memory>

namespace pi_agent {

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
