// Removing the temporary directories that lie on disk. Root removes its own empty directories; what an agent made is removed by a child
// with that agent's identity.
#pragma once

#include "common/base/channel.hpp"
#include "common/host/identity.hpp"
#include "runner/root/errand/errand.hpp"

#include <memory>
#include <string>
#include <vector>

namespace pi_agent {

// Removes the directory `path`, STATE_DIR/sessions/ID; a missing one is fine. Of several processes that do so one works and the others
// wait for it. Throws Failure when something is left at the deadline.
void remove_scratch(const AsRoot &root, const std::string &path, Deadline deadline);

// Everything that a session left, on disk too. What cannot be removed of that in this time is recorded, and the session's directory stays
// with its link to it: for whoever else removes the session, and for the next sweep.
void remove_session_with_scratch(const AsRoot &root, const std::string &id, int patience_seconds);
// The same, and the directory stays in any case, with its record.
void unmount_session_with_scratch(const AsRoot &root, const std::string &id, int patience_seconds);

// Removes, in the background, what sessions left on disk that are not there any more: after a crash of the host, or because there was too
// much to remove. A launch begins it and waits for nothing: it was often another user who left that.
class ScratchSweep {
public:
    ScratchSweep(const AsRoot &root, const std::string &state_dir) noexcept;
    ScratchSweep(const ScratchSweep &) = delete;
    ScratchSweep &operator=(const ScratchSweep &) = delete;
    ScratchSweep(ScratchSweep &&) = delete;
    ScratchSweep &operator=(ScratchSweep &&) = delete;
    ~ScratchSweep() = default;
    // What is not removed in ten seconds more is left to the next sweep.
    void finish() noexcept;

private:
    void begin(const std::string &state_dir);

    const AsRoot &root_;
    std::string parent_;
    std::vector<std::pair<std::string, std::unique_ptr<Child>>> children_; // each with the path that it empties
};

} // namespace pi_agent
