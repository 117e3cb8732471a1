// fdopendir(3) and readdir(3) with an owner.
#include "common/base/files.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string_view>

namespace pi_agent {

DirectoryStream::DirectoryStream(UniqueFd directory) noexcept : stream_(directory ? fdopendir(directory.get()) : nullptr)
{
    if (stream_) static_cast<void>(directory.release()); // the stream's now
}

DirectoryStream DirectoryStream::reopened(FdRef directory) noexcept
{
    return DirectoryStream(UniqueFd::adopt(openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
}

const dirent *DirectoryStream::next() noexcept
{
    for (;;) {
        errno = 0;
        const dirent *entry = readdir(stream_.get()); // cppcheck-suppress readdirCalled
        if (entry == nullptr) return nullptr;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") return entry;
    }
}

} // namespace pi_agent
