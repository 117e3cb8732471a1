// Start slots: locked files that only root can open, a fixed number for each user.
#include "runner/start_slot.hpp"

#include "common/channel.hpp"
#include "common/defence.hpp"
#include "common/error.hpp"
#include "runner/limits.hpp"
#include "runner/session_directory.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <utility>

namespace pi_agent {

namespace {

constexpr int slot_patience_seconds = 3; // less than one that says nothing is waited for

UniqueFd open_slots()
{
    const UniqueFd parent = open_runtime_directory();
    if (mkdirat(parent.get(), "starting", 0700) != 0 && errno != EEXIST) throw_errno("creating the directory of start slots");
    UniqueFd slots = UniqueFd::adopt(openat(parent.get(), "starting", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!slots) throw_errno("opening the directory of start slots");
    return slots;
}

// Nothing where all are taken.
UniqueFd try_start_slot(Uid user)
{
    const UniqueFd slots = open_slots();
    for (std::size_t number = 0; number < start_limit; ++number) {
        const std::string name = std::to_string(user.value()) + "-" + std::to_string(number);
        UniqueFd slot = UniqueFd::adopt(openat(slots.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!slot) throw_errno("opening a start slot");
        if (flock(slot.get(), LOCK_EX | LOCK_NB) == 0) return slot;
        if (errno != EWOULDBLOCK && errno != EINTR) throw_errno("locking a start slot");
        if (!defence_is_on("start-limit")) return slot;
    }
    return UniqueFd();
}

} // namespace

UniqueFd take_start_slot(const AsRoot & /*root*/, Uid user)
{
    UniqueFd slot = try_start_slot(user);
    if (!slot)
        throw Failure(ExitStatus::limit,
                      "limit: " + std::to_string(start_limit) + " starts of yours are under way already; try again in a moment");
    return slot;
}

UniqueFd wait_for_start_slot(const AsRoot &root, Uid user, const std::function<void()> &waiting)
{
    UniqueFd slot = try_start_slot(user);
    if (slot) return slot;
    for (const Deadline deadline = in_seconds(slot_patience_seconds); !slot && Clock::now() < deadline; slot = try_start_slot(user)) {
        waiting();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return slot ? std::move(slot) : take_start_slot(root, user);
}

} // namespace pi_agent
