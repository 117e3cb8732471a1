// Opens paths as a user who does not lend their rights to their agent. What an agent can have written is content, not instruction: a path
// that has come into a directory that agents write in (common/decide/agent_places.hpp) does not leave it again, whoever made the link.
#pragma once

#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/decide/agent_places.hpp"

#include <memory>
#include <string>
#include <sys/stat.h>

namespace pi_agent {

// What an agent can have arranged: a link, or something mounted, that leads out of a directory that agents write in (the text names it,
// where it leads, and what to do), or something in there that cannot be opened.
class NotFollowed : public Failure {
public:
    NotFollowed(const std::string &text, bool leads_out) : Failure(ExitStatus::configuration, text), leads_out_(leads_out) {}
    [[nodiscard]] bool leads_out() const noexcept { return leads_out_; }

private:
    bool leads_out_;
};

// What a walk has come to; never a symbolic link.
struct UserPlace {
    std::string path; // as walked, with followed links replaced by their targets; in an agents' directory beginning with its own path
    UniqueFd fd;      // O_PATH
    struct stat facts {};
    const AgentPlace *written_by = nullptr;           // the agents' directory that it lies in; in none: only its user made the way here
    std::shared_ptr<const UserPlace> above = nullptr; // in there: what ".." means; none for that directory itself
};
using UserPlacePtr = std::shared_ptr<const UserPlace>;

// For processes that have become the user. Outside of the agents' directories links are followed as by the kernel. Inside, each step is
// taken from the descriptor of the last one, without links and mount points (openat2(2)), and ".." is the step taken back: whatever an
// agent renames or exchanges meanwhile, what is reached lay in there.
class UserPaths {
public:
    explicit UserPaths(AgentPlaces places) : places_(std::move(places)) {}
    UserPaths(const UserPaths &) = delete;
    UserPaths &operator=(const UserPaths &) = delete;
    ~UserPaths() = default;

    // Absolute. Throws NotFollowed, and SystemFailure for what cannot be opened.
    [[nodiscard]] UserPlacePtr follow(const std::string &path) const;
    // Relative to a directory that was come to.
    [[nodiscard]] UserPlacePtr follow(UserPlacePtr from, const std::string &path) const;

    // The agents' directory that the way leads into, though what it leads to may not be there or not be followed; nullptr for none.
    [[nodiscard]] const AgentPlace *entered_by(const std::string &path) const;

    [[nodiscard]] const AgentPlaces &places() const noexcept { return places_; }

private:
    AgentPlaces places_;
};

} // namespace pi_agent
