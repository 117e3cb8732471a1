// Emptying and removing sessions' temporary directories on disk.
#include "runner/root/confined/scratch_removal.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_agent/places.hpp"
#include "runner/root/confined/placeholder_removal.hpp"
#include "runner/root/session/file_lock.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/scratch.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/wire/answer.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace pi_agent {

namespace {

constexpr int removal_patience_seconds = 10;
constexpr std::size_t children_at_once = 4; // of one sweep
constexpr std::size_t orphans_at_once = 64;
constexpr const char *kernels_work = "work"; // in the work directory of an overlay (kernel, overlayfs)
constexpr std::size_t inner_limit = 500;     // directories of one session

// One session's directory on disk, open and locked. Only root can open it for reading, so nobody else can take the lock.
struct FoundScratch {
    UniqueFd parent;
    std::string id;
    UniqueFd top;
    std::vector<std::pair<std::string, UniqueFd>> inner; // the directories in it, by name
};

UniqueFd open_directory(FdRef parent, const char *name)
{
    UniqueFd directory = UniqueFd::adopt(openat(parent.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) require_gone(std::string("opening a session's temporary directory: ") + name);
    return directory;
}

enum class Busy { is_passed_over, is_failure };

// None when it is gone; and, where the caller passes over what somebody else has locked until the deadline, of that, too.
std::optional<FoundScratch> find_scratch(const std::string &path, Deadline deadline, Busy busy)
{
    auto [directory, id] = split_last(path);
    if (!is_session_id(id)) throw Failure(ExitStatus::internal, path + " is no session's temporary directory");
    FoundScratch found{open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of temporary directories"), id, UniqueFd(), {}};
    found.top = open_directory(found.parent, id.c_str());
    if (!found.top) return std::nullopt;
    if (!lock_until(found.top, deadline, path)) {
        if (busy == Busy::is_passed_over) return std::nullopt;
        throw Failure(ExitStatus::system_failure, path + " is locked, by its runner or by who removes it; the next sweep goes on");
    }
    for (auto &name : names_in(found.top)) {
        if (found.inner.size() == inner_limit) throw Failure(ExitStatus::internal, path + " holds more than a session makes there");
        UniqueFd inner = open_directory(found.top, name.c_str());
        if (inner) found.inner.emplace_back(std::move(name), std::move(inner));
    }
    return found;
}

// An overlay leaves a directory in its work directory, with no rights, and sometimes something in that. Nobody else comes there.
bool remove_kernels_work(FdRef work)
{
    return unlinkat(work.get(), kernels_work, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

// Only what is empty: that needs nobody's identity, and most sessions leave no more. True when all is gone.
bool remove_when_empty(const FoundScratch &found)
{
    bool all = true;
    for (const auto &[name, inner] : found.inner) {
        if (is_cache_work(name))
            remove_kernels_work(inner);
        else
            unlinkat(inner.get(), tmpdir_of(found.id).substr(5).c_str(), AT_REMOVEDIR); // best_effort: what stays shows below
        if (unlinkat(found.top.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) continue;
        if (errno != ENOTEMPTY && errno != EEXIST) throw_errno("removing a session's temporary directory");
        all = false;
    }
    if (!all) return false;
    if (unlinkat(found.parent.get(), found.id.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
        throw_errno("removing a session's temporary directory");
    return true;
}

// The account whose directories these are: root alone could give them away. It may be gone from the user database.
Account owner_of(const FoundScratch &found)
{
    for (const auto &[name, inner] : found.inner) {
        struct stat facts = examine(inner, "examining a session's temporary directory");
        if (is_cache_work(name) && fstatat(inner.get(), kernels_work, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            require_gone("examining what an overlay left");
            continue;
        }
        if (facts.st_uid != 0)
            return Account{"the session's agent", Uid(facts.st_uid), Gid(facts.st_gid), "/", {static_cast<gid_t>(facts.st_gid)}};
    }
    throw Failure(ExitStatus::internal, "a session's temporary directory holds something of root's");
}

// The kernel's directories in which something is left. Their owner can empty the others, and these once they are given to it.
std::vector<UniqueFd> give_kernels_work(const Account &owner, const FoundScratch &found)
{
    std::vector<UniqueFd> directories;
    for (const auto &[name, inner] : found.inner) {
        if (!is_cache_work(name) || remove_kernels_work(inner)) continue;
        UniqueFd directory = open_directory(inner, kernels_work);
        if (!directory) continue;
        if (fchown(directory.get(), owner.uid.value(), owner.gid.value()) != 0 || fchmod(directory.get(), 0700) != 0)
            throw_errno("giving what an overlay left to its session's agent");
        directories.push_back(std::move(directory));
    }
    return directories;
}

enum class Hurry { yes, no };

// The child keeps the lock as long as it works, even when this process lets go.
std::unique_ptr<Child> start_emptying(const AsRoot &root, const FoundScratch &found, Hurry hurry)
{
    const Account owner = owner_of(found);
    const std::vector<UniqueFd> given = give_kernels_work(owner, found);
    std::vector<int> inner;
    for (const auto &[name, directory] : found.inner)
        if (!is_cache_work(name)) inner.push_back(directory.get());
    for (const auto &directory : given)
        inner.push_back(directory.get());
    std::vector<int> keep{found.top.get()};
    keep.insert(keep.end(), inner.begin(), inner.end());
    return std::make_unique<Child>(root, "remover of temporary files", owner, keep, [inner, hurry](const AsUser & /*user*/, FdRef channel) {
        if (hurry == Hurry::no) setpriority(PRIO_PROCESS, 0, 19); // best_effort
        fault_point("emptying");
        for (const int directory : inner)
            remove_content_beneath(FdRef(directory));
        send_answer(channel, "");
    });
}

// Throws the child's own failure, or that it took too long.
void await(Child &child, Deadline deadline)
{
    if (!wait_for_input(child.channel(), deadline))
        throw Failure(ExitStatus::system_failure, "there is too much to remove at once; the next sweep goes on");
    child.receive();
}

} // namespace

void remove_scratch(const AsRoot &root, const std::string &path, Deadline deadline)
{
    const std::optional<FoundScratch> found = find_scratch(path, deadline, Busy::is_failure);
    if (!found || remove_when_empty(*found)) return;
    await(*start_emptying(root, *found, Hurry::yes), deadline);
    if (!remove_when_empty(*found)) throw Failure(ExitStatus::system_failure, path + " is filled while it is removed");
}

namespace {

RemoveRest rest_of(const AsRoot &root, const std::string &id, int patience_seconds)
{
    return [&root, id, patience_seconds](FdRef session) {
        remove_placeholders(root, id, session, in_seconds(cleanup_placeholder_seconds));
        try {
            const std::string path = read_session_link(session, scratch_link);
            if (!path.empty()) remove_scratch(root, path, in_seconds(patience_seconds));
            return true;
        } catch (const Failure &failure) { // nothing is mounted any more all the same
            record_problem(id, std::string("temporary files are left: ") + failure.what());
            return false;
        }
    };
}

} // namespace

void remove_session_with_scratch(const AsRoot &root, const std::string &id, int patience_seconds)
{
    remove_session(root, id, rest_of(root, id, patience_seconds));
}

void unmount_session_with_scratch(const AsRoot &root, const std::string &id, int patience_seconds)
{
    unmount_session(root, id, rest_of(root, id, patience_seconds));
}

ScratchSweep::ScratchSweep(const AsRoot &root, const std::string &state_dir) noexcept : root_(root)
{
    try {
        begin(state_dir);
    } catch (const std::exception &failure) { // one user's leftover must not be another's refusal
        record_problem("sweep", failure.what());
    }
}

void ScratchSweep::begin(const std::string &state_dir)
{
    parent_ = state_dir + "/" + scratch_parent;
    const UniqueFd parent = open_trusted(parent_, O_RDONLY | O_DIRECTORY, "directory of temporary directories");
    std::vector<std::string> ids = names_in(parent);
    std::shuffle(ids.begin(), ids.end(), std::random_device()); // what cannot be removed must not always be the first
    std::size_t orphans = 0;
    // A session makes its directory in /run first and removes it last: what has none there has no session.
    for (const auto &id : ids) {
        if (!is_session_id(id) || session_exists(root_, id)) continue;
        if (++orphans > orphans_at_once || children_.size() == children_at_once) return;
        const std::string path = parent_ + "/" + id;
        try {
            const std::optional<FoundScratch> found = find_scratch(path, Clock::now(), Busy::is_passed_over);
            if (!found || remove_when_empty(*found)) continue;
            children_.emplace_back(path, start_emptying(root_, *found, Hurry::no));
            record_problem(id, "temporary files without a session are removed");
        } catch (const Failure &failure) {
            record_problem(id, std::string("temporary files without a session cannot be removed: ") + failure.what());
        }
    }
}

void ScratchSweep::finish() noexcept
{
    const Deadline deadline = in_seconds(removal_patience_seconds);
    for (auto &[path, child] : children_) {
        try {
            await(*child, deadline);
            child.reset(); // and with it the lock
            if (const std::optional<FoundScratch> found = find_scratch(path, deadline, Busy::is_passed_over)) remove_when_empty(*found);
        } catch (const std::exception &failure) { // best_effort: recorded
            record_problem(split_last(path).second, std::string("temporary files are left: ") + failure.what());
        }
    }
}

} // namespace pi_agent
