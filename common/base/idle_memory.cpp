// Giving back what a start has left in memory.
#include "common/base/idle_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pi_agent {

namespace {

// Relocated tables that the linker makes read-only later lie in a writable segment, so they are never among these.
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

} // namespace pi_agent
