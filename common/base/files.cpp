// Opens and examines files (common/base/fd.hpp), reads whole files and directories, and finds out whether something exists.
#include "common/base/files.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <linux/openat2.h>
#include <sys/syscall.h>

namespace pi_agent {

UniqueFd open_at(FdRef directory, const std::string &name, int flags, mode_t mode) noexcept
{
    return UniqueFd::adopt(openat(directory.get(), name.c_str(), flags | O_CLOEXEC, mode));
}

UniqueFd open_or_throw(const std::string &action, const std::string &path, int flags)
{
    return open_or_throw(action, FdRef(AT_FDCWD), path, flags);
}

UniqueFd open_or_throw(const std::string &action, FdRef directory, const std::string &name, int flags, mode_t mode)
{
    UniqueFd fd = open_at(directory, name, flags, mode);
    if (!fd) throw_errno(action);
    return fd;
}

UniqueFd open_resolved(FdRef directory, const std::string &path, int flags, std::uint64_t resolve) noexcept
{
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
    how.resolve = resolve;
    return UniqueFd::adopt(static_cast<int>(syscall(SYS_openat2, directory.get(), path.empty() ? "." : path.c_str(), &how, sizeof how)));
}

Pipe make_pipe(int reading_flags, const char *action)
{
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(action);
    Pipe pipe{UniqueFd::adopt(ends[0]), UniqueFd::adopt(ends[1])};
    if (reading_flags != 0 && fcntl(ends[0], F_SETFL, reading_flags) != 0) throw_errno(action);
    return pipe;
}

UniqueFd open_if_there(const std::string &action, FdRef directory, const std::string &name, int flags)
{
    UniqueFd fd = open_at(directory, name, flags);
    if (!fd) require_gone(action);
    return fd;
}

struct stat examine(FdRef fd, const std::string &action)
{
    struct stat facts {};
    if (fstat(fd.get(), &facts) != 0) throw_errno(action);
    return facts;
}

std::string read_link(FdRef directory, const std::string &name)
{
    std::array<char, PATH_MAX> text{};
    const ssize_t length = readlinkat(directory.get(), name.c_str(), text.data(), text.size());
    return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "";
}

void require_gone(const std::string &action, int also)
{
    const int reason = errno; // looking for the defence may change it
    if (reason == ENOENT || (also != 0 && reason == also) || !defence_is_on("only-enoent")) return;
    throw SystemFailure(reason, action);
}

bool has_name(FdRef directory, const std::string &name, const std::string &action)
{
    if (faccessat(directory.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return true;
    require_gone(action);
    return false;
}

bool path_exists(const std::string &path)
{
    return has_name(FdRef(AT_FDCWD), path, "looking for " + path);
}

std::string read_whole(FdRef fd, std::size_t limit, const std::string &name)
{
    const struct stat facts = examine(fd, "examining " + name);
    std::string text(std::min(static_cast<std::size_t>(facts.st_size), limit) + 1, '\0'); // one more byte shows whether it grew
    std::size_t length = 0;
    for (;;) {
        if (length == text.size()) text.resize(2 * text.size());
        const ssize_t count = pread(fd.get(), text.data() + length, text.size() - length, static_cast<off_t>(length));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("reading " + name);
        if (count == 0) break;
        length += static_cast<std::size_t>(count);
        if (length > limit)
            throw Failure(ExitStatus::configuration,
                          name + " is larger than " + std::to_string(limit) + " bytes, the most that is read of such a file; shorten it");
    }
    text.resize(length);
    return text;
}

void write_whole(FdRef fd, std::string_view bytes, const std::string &name)
{
    while (!bytes.empty()) {
        const ssize_t written = write(fd.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw_errno("writing " + name);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

DirectoryStream::DirectoryStream(UniqueFd directory) noexcept : stream_(directory ? fdopendir(directory.get()) : nullptr)
{
    if (stream_) static_cast<void>(directory.release()); // the stream's now
}

DirectoryStream DirectoryStream::reopened(FdRef directory) noexcept
{
    return DirectoryStream(open_at(directory, ".", O_RDONLY | O_DIRECTORY));
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
