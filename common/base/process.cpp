// What a process does to itself and to others that it knows: handles, memory, keyring, arguments, random names.
#include "common/base/process.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <link.h>
#include <linux/keyctl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>

namespace pi_agent {

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
