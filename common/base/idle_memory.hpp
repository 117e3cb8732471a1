// Memory that a process took for its start and does not need while it waits.
#pragma once

#include "common/base/channel.hpp"

#include <optional>

namespace pi_agent {

// Gives back to the kernel what the allocator keeps free (malloc_trim(3)) and the pages of code and constants, which are read again from
// their files where they are needed (madvise(2), MADV_DONTNEED of private mappings without writable pages; dl_iterate_phdr(3)). To be
// called by a process that will wait long, with no other thread running. Costs some tenths of a millisecond; cannot fail, and changes
// nothing but memory.
void release_start_up_memory() noexcept;

// Does so once, when the wait has taken a second: what is over before that reads nothing again.
class StartUpMemory {
public:
    void wait_begins() noexcept { due_ = in_seconds(1); }
    // For poll(2), where it would wait for `milliseconds` (-1: without end).
    [[nodiscard]] int patience(int milliseconds) const;
    // To be called whenever poll has returned.
    void look() noexcept;

private:
    std::optional<Deadline> due_;
};

} // namespace pi_agent
