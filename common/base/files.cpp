// What a process does with files, with others, and to itself.
#include "common/base/files.hpp"

#include "common/seams/seams.hpp"

#include <link.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstddef>

namespace pi_agent {

// --- Opens and examines files (common/base/channel.hpp), reads whole files and directories, and finds out whether something exists.

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
        if (const std::string_view name = entry->d_name; name != "." && name != "..") return entry;
    }
}

// --- What a process does to itself and to others that it knows: handles, memory, keyring, arguments, random names.

UniqueFd open_process(pid_t pid)
{
    return UniqueFd::adopt(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool has_ended(FdRef process)
{
    pollfd wait{process.get(), POLLIN, 0};
    return poll(&wait, 1, 0) > 0;
}

void signal_process(FdRef process, int number, const char *what)
{
    if (syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0) != 0 && errno != ESRCH) throw_errno(what);
}

namespace {

// Relocated tables that the linker makes read-only later are in a writable segment, so they are never among these.
int release_segments(dl_phdr_info *object, std::size_t /*size*/, void *page_size)
{
    const auto page = *static_cast<const std::size_t *>(page_size);
    for (int index = 0; index < object->dlpi_phnum; ++index) {
        const ElfW(Phdr) &segment = object->dlpi_phdr[index]; // NOLINT(cppcoreguidelines-pro-bounds-pointer-arithmetic): an array of C
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
        const std::size_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
        const std::size_t end = (object->dlpi_addr + segment.p_vaddr + segment.p_filesz) / page * page; // a last part may be shared
        if (begin < end) madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED); // NOLINT: an address of the dynamic linker
    }
    return 0;
}

} // namespace

void release_start_up_memory() noexcept
{
    malloc_trim(0);
    auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    dl_iterate_phdr(release_segments, &page);
}

int StartUpMemory::patience(int milliseconds) const
{
    if (!due_) return milliseconds;
    const int left = milliseconds_left(*due_);
    return milliseconds < 0 ? left : std::min(milliseconds, left);
}

void StartUpMemory::look() noexcept
{
    if (!due_ || Clock::now() < *due_) return;
    due_.reset();
    release_start_up_memory();
}

int leave_session_keyring() noexcept
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0 || errno == ENOSYS) return 0;
    if (errno != EPERM) return errno;
    // The kernel itself never answers this question with EPERM.
    const bool filtered = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 && errno == EPERM;
    return filtered ? 0 : EPERM;
}

bool place_descriptors(std::vector<int> fds) noexcept
{
    const auto above_all = static_cast<int>(fds.size()); // first: one of them could itself have a number that another one gets
    for (int &fd : fds) {
        fd = fcntl(fd, F_DUPFD_CLOEXEC, above_all);
        if (fd < 0) return false;
    }
    for (int place = 0; place < above_all; ++place)
        if (dup2(fds[static_cast<std::size_t>(place)], place) < 0) return false;
    return true;
}

bool unblock_signals() noexcept
{
    sigset_t none;
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, nullptr) == 0;
}

bool restore_signals() noexcept
{
    for (int number = 1; number < NSIG; ++number)
        signal(number, SIG_DFL); // best_effort: some numbers cannot be set, and need not be
    return unblock_signals();
}

std::string random_hex(std::size_t bytes)
{
    std::array<unsigned char, 16> random{};
    if (bytes > random.size()) throw Failure(ExitStatus::internal, "more random bytes than there is room for");
    if (getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes)) throw_errno("getting random bytes");
    std::string text;
    for (std::size_t index = 0; index < bytes; ++index) {
        text += "0123456789abcdef"[random[index] >> 4U];
        text += "0123456789abcdef"[random[index] & 15U];
    }
    return text;
}

} // namespace pi_agent
