// Owned and borrowed file descriptors, and how to get them.
#pragma once

#include <cstdint>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

// Borrowed: never closes. Valid as long as its owner lives.
class FdRef {
public:
    explicit constexpr FdRef(int fd) noexcept : fd_(fd) {}
    [[nodiscard]] constexpr int get() const noexcept { return fd_; }

private:
    int fd_;
};

// Owns one descriptor, or none. close(2) is never retried: Linux releases the descriptor even on EINTR.
class UniqueFd {
public:
    constexpr UniqueFd() noexcept = default;
    // Takes ownership of `fd`.
    static UniqueFd adopt(int fd) noexcept
    {
        UniqueFd owner;
        owner.fd_ = fd;
        return owner;
    }
    UniqueFd(UniqueFd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd &operator=(UniqueFd &&other) noexcept
    {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    UniqueFd(const UniqueFd &) = delete;
    UniqueFd &operator=(const UniqueFd &) = delete;
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
    explicit operator bool() const noexcept { return is_open(); }
    operator FdRef() const noexcept { return FdRef(fd_); } // NOLINT(google-explicit-constructor): borrowing is always safe
    // Gives ownership away.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    void reset() noexcept
    {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

private:
    int fd_ = -1;
};

// Another number for the same open file: close-on-exec, and above the standard descriptors. Empty if it fails (errno).
inline UniqueFd duplicate(FdRef fd) noexcept
{
    return UniqueFd::adopt(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

// --- Opens, close-on-exec. Empty on failure (errno); functions with an `action` throw SystemFailure instead.

UniqueFd open_at(FdRef directory, const std::string &name, int flags, mode_t mode = 0) noexcept;
UniqueFd open_or_throw(const std::string &action, const std::string &path, int flags);
UniqueFd open_or_throw(const std::string &action, FdRef directory, const std::string &name, int flags, mode_t mode = 0);

// openat2(2), with its RESOLVE_ bits; "" is the directory itself.
UniqueFd open_resolved(FdRef directory, const std::string &path, int flags, std::uint64_t resolve) noexcept;

struct Pipe {
    UniqueFd reading;
    UniqueFd writing;
};

// Both ends close-on-exec; `reading_flags` are for the reading end only: O_NONBLOCK, or 0.
Pipe make_pipe(int reading_flags = 0, const char *action = "making a pipe");

struct stat examine(FdRef fd, const std::string &action);

// The target of a symlink. A `name` of "" means the symlink that is open itself (O_PATH). Empty if it cannot be read (errno); cut at
// PATH_MAX.
std::string read_link(FdRef directory, const std::string &name);

} // namespace pi_agent
