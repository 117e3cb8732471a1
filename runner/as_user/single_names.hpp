// Protected files have one name: by another one (a hard link) a file is changed whatever is mounted over the first.
#pragma once

#include "common/base/channel.hpp"
#include "runner/as_user/shown_path.hpp"

#include <cstdint>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace pi_agent {

// In a child that is the user. Who made the other name does not matter: a session in another repository of the root could have.
class SingleNames {
public:
    explicit SingleNames(const GuardedTree &tree);

    // Of the file at `path` (canonical, relative to the top), or of every file in the directory there: one with several names that the user
    // may change is replaced by a copy with the same owner, mode (but setuid and setgid), times and attributes. Throws
    // Failure(configuration) for one that cannot be replaced, and Failure(limit) where that is too much to look at or to replace.
    void require(const std::string &path);

    // What was replaced, for people.
    [[nodiscard]] std::vector<std::string> notices() const;

private:
    void take_closed(const std::string &path, int error);
    void look_into(const std::string &path, std::vector<std::string> &ahead);
    void make_single(FdRef parent, const std::string &path, const struct stat &facts);
    [[noreturn]] void too_much(const std::string &what) const;

    const GuardedTree &tree_;
    std::uint64_t mount_;
    Deadline deadline_;
    std::size_t entries_ = 0;
    std::vector<std::string> replaced_;
    std::vector<std::string> closed_; // somebody else's
};

} // namespace pi_agent
