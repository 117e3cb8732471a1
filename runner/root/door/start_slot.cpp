// The start's place among others of the same caller, and its progress, shown to that caller.
#include "runner/root/door/start_slot.hpp"

#include "common/base/channel.hpp"
#include "common/base/error.hpp"
#include "common/base/request.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/limits.hpp"
#include "runner/root/session/session_directory.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <string>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr int slot_patience_seconds = 3; // less than one that says nothing is waited for

// Nothing is ever written into it, and a lock leaves nothing: not of users that are gone, and nothing that a start could find half removed.
UniqueFd open_slots()
{
    const UniqueFd parent = open_runtime_directory();
    UniqueFd slots = open_or_throw("opening the file of start slots", parent, "starts", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    return slots;
}

// Nothing where all are taken.
UniqueFd try_start_slot(Uid user)
{
    static_assert(sizeof(off_t) == 8, "each user's bytes are their own");
    UniqueFd slots = open_slots();
    for (std::size_t number = 0; number < start_limit; ++number) {
        struct flock slot {};
        slot.l_type = F_WRLCK;
        slot.l_whence = SEEK_SET;
        slot.l_start = static_cast<off_t>(user.value()) * static_cast<off_t>(start_limit) + static_cast<off_t>(number);
        slot.l_len = 1;
        if (fcntl(slots.get(), F_OFD_SETLK, &slot) == 0) return slots; // it is the descriptor's, in whichever process
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) throw_errno("locking a start slot");
        if (!defence_is_on("start-limit")) return slots;
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

void Progress::show(const std::string &doing)
{
    if (doing.empty() || Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(100);
    try {
        send_packet(wrapper_, encode(RunnerMessage(Preparing{doing})), {}, Clock::now());
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: who does not read does not want to know
    }
}

} // namespace pi_agent
