// Emptying a tree: depth first down to a bound, and what lies deeper is first moved up to the top.
#include "runner/as_agent/removal.hpp"

#include "common/base/directory_stream.hpp"
#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/base/random_hex.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/defence.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int open_levels = 32; // each costs two descriptors and a buffer of the C library's

// ".." is never used to come back from the depth: another process may have moved the directory meanwhile.
class Emptying {
public:
    explicit Emptying(FdRef top) : top_(top) {}

    void run()
    {
        // It may have been opened for us by somebody who needs no rights.
        if (defence_is_on("removal-rights")) fchmod(top_.get(), 0700); // best_effort: what is missing shows below
        do {
            left_ = removed_ = 0;
            problem_.clear();
            pass(top_, 0);
        } while (left_ > 0 && removed_ > 0);
        if (left_ > 0) throw Failure(ExitStatus::system_failure, problem_.empty() ? "a directory is moved while it is removed" : problem_);
    }

private:
    void pass(FdRef directory, int depth)
    {
        auto stream = DirectoryStream::reopened(directory);
        if (!stream) return keep(false, "listing a directory that is removed");
        while (const dirent *entry = stream.next())
            remove(directory, entry->d_name, entry->d_type, depth);
    }

    // A directory is asked for first: it is opened or it is none, and whatever takes its place meanwhile is not entered.
    void remove(FdRef directory, const std::string &name, unsigned char type, int depth)
    {
        if (type != DT_REG) {
            if (const UniqueFd child = try_take_directory(directory, name)) {
                if (depth >= open_levels && defence_is_on("removal-depth")) return move_up(directory, name);
                pass(child, depth + 1);
            }
            if (unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) == 0) return static_cast<void>(++removed_);
            if (errno != ENOTDIR) return keep(errno == ENOENT, "removing " + escape_for_display(name));
        }
        if (unlinkat(directory.get(), name.c_str(), 0) == 0) return static_cast<void>(++removed_);
        keep(errno == ENOENT, "removing " + escape_for_display(name));
    }

    void move_up(FdRef directory, const std::string &name)
    {
        if (renameat2(directory.get(), name.c_str(), top_.get(), ("removed-" + random_hex(8)).c_str(), RENAME_NOREPLACE) != 0)
            return keep(errno == ENOENT, "moving " + escape_for_display(name));
        ++left_;
        ++removed_; // from where it was: the next pass goes on
    }

    // The first problem is the one to tell: a directory that is not empty because of it comes later.
    void keep(bool is_gone, const std::string &action)
    {
        if (is_gone) return;
        if (problem_.empty()) problem_ = SystemFailure(errno, action).what();
        ++left_;
    }

    FdRef top_;
    std::uint64_t left_ = 0;
    std::uint64_t removed_ = 0;
    std::string problem_;
};

} // namespace

void remove_content_beneath(FdRef directory)
{
    Emptying(directory).run();
}

void remove_beneath(FdRef parent, const std::string &name)
{
    if (unlinkat(parent.get(), name.c_str(), 0) == 0 || errno == ENOENT) return;
    if (errno != EISDIR && errno != EPERM) throw_errno("removing " + escape_for_display(name));
    {
        const UniqueFd directory = try_take_directory(parent, name);
        if (!directory) throw_errno("removing " + escape_for_display(name));
        Emptying(directory).run();
    }
    if (unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) throw_errno("removing " + escape_for_display(name));
}

} // namespace pi_agent
