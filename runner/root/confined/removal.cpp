// Removes what a session left: what accounts other than root own of it, and all of it where its runner could not (pi-agent-cleanup).
#include "runner/as_user/protected_paths.hpp"
#include "runner/root/confined/session_end.hpp"

#include <fstream>
#include <random>
#include <sys/resource.h>

namespace pi_agent {

namespace {

constexpr char is_used = 'U'; // in the order to the remover, a letter for each path: another session uses this one
constexpr char is_free = 'F';

void remove_as_user(const std::vector<std::string> &paths, FdRef channel)
{
    while (!wait_for_input(channel, in_seconds(60))) { // a sandbox may take any time to end; this process ends with the runner
    }
    const std::optional<Packet> order = receive_packet(channel, in_seconds(1));
    if (!order) return; // the runner is gone; whoever cleans up after it does this, too
    fault_point("unplacing");
    const UniqueFd top = open_or_throw("opening /", "/", O_PATH | O_DIRECTORY);
    for (std::size_t index = std::min(paths.size(), order->bytes.size()); index-- > 0;)
        if (order->bytes[index] == is_free) remove_placeholder(top, paths[index].substr(1));
    send_answer(channel, "");
}

constexpr const char *placeholders_left = "placeholders are left in the project: ";
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
    return open_if_there(std::string("opening a session's temporary directory: ") + name, parent, name,
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

enum class Busy { is_passed_over, is_failure };

// None when it is gone. Also none for one that somebody else has locked until the deadline, where the caller passes over those.
std::optional<FoundScratch> find_scratch(const std::string &path, Deadline deadline, Busy busy)
{
    auto [directory, id] = split_last(path);
    if (!is_session_id(id)) throw Failure(ExitStatus::internal, path + " is not a session's temporary directory");
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

// An overlay leaves a directory in its work directory, with mode 0, and sometimes something in that. Only root gets there.
bool remove_kernels_work(FdRef work)
{
    return unlinkat(work.get(), kernels_work, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

// Removes only what is empty: that needs nobody's identity, and most sessions leave no more. True when all is gone.
bool remove_when_empty(const FoundScratch &found)
{
    bool all = true;
    for (const auto &[name, inner] : found.inner) {
        if (is_cache_work(name)) remove_kernels_work(inner);
        if (unlinkat(found.top.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) continue;
        if (errno != ENOTEMPTY && errno != EEXIST) throw_errno("removing a session's temporary directory");
        all = false;
    }
    if (!all) return false;
    if (unlinkat(found.parent.get(), found.id.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
        throw_errno("removing a session's temporary directory");
    return true;
}

// The account that owns these directories: root alone could give them away. It may be gone from the user database.
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

// The kernel's directories that are not empty. Their owner can empty the others, and these once they are given to that owner.
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

// Throws the child's own failure, or a failure that it took too long.
void await(Child &child, Deadline deadline)
{
    if (!wait_for_input(child.channel(), deadline))
        throw Failure(ExitStatus::system_failure, "there is too much to remove at once; the next sweep goes on");
    child.receive();
}

// The control group of one of the session's units. Empty when it is gone, as it should be.
ControlGroup group_of(const std::string &session_id, const std::string &unit)
{
    std::ifstream own("/proc/self/cgroup");
    if (const auto group = find_sibling_group(own, cleanup_name(session_id), unit)) return *group;
    throw Failure(FailureKind::by_hand, "the unit " + cleanup_name(session_id) + " starts this program; do not run it by hand");
}

} // namespace

void PlaceholderRemoval::begin() noexcept // NOLINT(bugprone-exception-escape): attempt_recorded catches it
{
    if (std::exchange(begun_, true)) return;
    const auto start = [&] { // cppcheck-suppress throwInNoexceptFunction ; attempt_recorded catches it
        paths_ = recorded_placeholders(session_);
        if (paths_.empty() || !defence_is_on("remove-placeholders")) return;
        const auto uid = session_user(session_);
        const auto user = uid ? find_account(*uid) : std::nullopt;
        if (!user) throw Failure(ExitStatus::system_failure, "its user has no account any more");
        child_.emplace(root_, "remover of placeholders", *user, std::vector<int>{},
                       [&](const AsUser & /*user*/, FdRef channel) { remove_as_user(paths_, channel); });
    };
    attempt_recorded(id_, start, placeholders_left); // the mount points still go
}

void PlaceholderRemoval::finish(Deadline deadline) noexcept // NOLINT(bugprone-exception-escape): attempt_recorded catches it
{
    begin(); // cppcheck-suppress throwInNoexceptFunction ; it throws nothing
    const auto remove = [&] {
        if (!child_) return;
        // Some are mounted over only in other sessions' own mount tables, so nothing stops their removal here except this lock.
        const UniqueFd lock = lock_placeholders(session_user(session_).value(), deadline);
        if (!lock) throw Failure(ExitStatus::system_failure, "the end of another session takes too long");
        std::string order(paths_.size(), is_free);
        if (const auto others = placeholders_of_others(id_); defence_is_on("placeholder-records"))
            for (std::size_t index = 0; index < paths_.size(); ++index)
                if (others.contains(paths_[index])) order[index] = is_used;
        send_packet(child_->channel(), order, {}, deadline);
        if (!wait_for_input(child_->channel(), deadline)) {
            child_.reset(); // before another process has the lock
            throw Failure(ExitStatus::system_failure, "that took too long");
        }
        child_->receive();
        const UniqueFd records = find_beneath(session_, placeholders_directory, O_RDONLY | O_DIRECTORY);
        for (std::size_t index = 0; records && index < paths_.size(); ++index)
            unlinkat(records.get(), std::to_string(index).c_str(), 0); // best_effort: whatever stays is removed a second time
    };
    attempt_recorded(id_, remove, placeholders_left);
}

void remove_scratch(const AsRoot &root, const std::string &path, Deadline deadline)
{
    const std::optional<FoundScratch> found = find_scratch(path, deadline, Busy::is_failure);
    if (!found || remove_when_empty(*found)) return;
    await(*start_emptying(root, *found, Hurry::yes), deadline);
    if (!remove_when_empty(*found)) throw Failure(ExitStatus::system_failure, path + " is filled while it is removed");
}

void remove_session_with_scratch(const AsRoot &root, const std::string &id, int patience_seconds, Leave leave)
{
    const auto rest = [&](FdRef session) {
        PlaceholderRemoval(root, id, session).finish(in_seconds(cleanup_placeholder_seconds));
        const auto remove = [&] {
            const std::string path = read_session_link(session, scratch_link);
            if (!path.empty()) remove_scratch(root, path, in_seconds(patience_seconds));
        };
        return attempt_recorded(id, remove, "temporary files are left: "); // either way nothing is mounted any more
    };
    remove_session(root, id, rest, leave);
}

// NOLINTNEXTLINE(bugprone-exception-escape): attempt_recorded catches it
ScratchSweep::ScratchSweep(const AsRoot &root, const std::string &state_dir) noexcept
{
    const auto begin = [&] { // cppcheck-suppress throwInNoexceptFunction ; attempt_recorded catches it
        const std::string parent_of_all = state_dir + "/" + scratch_parent;
        std::vector<std::string> ids = names_in(open_trusted(parent_of_all, O_RDONLY | O_DIRECTORY, "directory of temporary directories"));
        std::shuffle(ids.begin(), ids.end(), std::random_device()); // what cannot be removed must not always be the first
        std::size_t orphans = 0;
        // A session makes its directory in /run first and removes it last: temporary files without one have no session.
        for (const auto &id : ids) {
            if (!is_session_id(id) || session_exists(root, id)) continue;
            if (++orphans > orphans_at_once || removals_.size() == children_at_once) return;
            const std::string path = parent_of_all + "/" + id;
            const auto remove = [&] {
                const std::optional<FoundScratch> found = find_scratch(path, Clock::now(), Busy::is_passed_over);
                if (!found || remove_when_empty(*found)) return;
                removals_.push_back({id, path, start_emptying(root, *found, Hurry::no)});
                record_problem(id, "temporary files without a session are removed");
            };
            attempt_recorded(id, remove, "temporary files without a session cannot be removed: ");
        }
    };
    attempt_recorded("sweep", begin); // one user's leftover must not be another's refusal
}

void ScratchSweep::finish() noexcept // NOLINT(bugprone-exception-escape): attempt_recorded catches it
{
    const Deadline deadline = in_seconds(removal_patience_seconds);
    for (auto &[id, path, child] : removals_) {
        const auto remove = [&, &at = path, &by = child] { // cppcheck-suppress throwInNoexceptFunction ; attempt_recorded catches it
            await(*by, deadline);
            by.reset(); // and with it the lock
            if (const std::optional<FoundScratch> found = find_scratch(at, deadline, Busy::is_passed_over)) remove_when_empty(*found);
        };
        attempt_recorded(id, remove, "temporary files are left: ");
    }
}

// What pi-agent-cleanup runs: as a unit of the session's own when that unit stops, or as the keeper that waits for the runner's end.

void clean_up_after_unit(const AsRoot &root, const std::string &session_id)
{
    // The unit's KillSignal= has killed all; a process that is left now came too late for it.
    fault_point("cleaning-up");
    const ControlGroup group = group_of(session_id, service_name(session_id));
    empty_group(group, in_seconds(cleanup_group_seconds));
    if (defence_is_on("gate-ends")) empty_group(group_of(session_id, gate_name(session_id)), in_seconds(cleanup_gate_seconds));
    UniqueFd session = try_open_session(open_sessions(), session_id);
    const bool is_of_docker = session && has_name(session, docker_mark, "looking whether the session is one of docker's");
    session.reset(); // what is removed below is not held open
    // Nobody else removes a container whose client was killed before it started it.
    if (is_of_docker && defence_is_on("docker:removed"))
        remove_container(root, container_name(session_id), in_seconds(cleanup_docker_seconds));
    remove_empty_groups(group);
    // A runner that lives knows more. One that is stopped keeps its record, and temporary files, which it has locked: its own end, or
    // whoever ends it, brings the rest.
    if (record_end_of_killed(root, session_id, in_seconds(cleanup_record_seconds)))
        return remove_session_with_scratch(root, session_id, cleanup_removal_seconds);
    remove_session_with_scratch(root, session_id, cleanup_removal_seconds, Leave::directory);
    record_problem(session_id,
                   "its runner lives and does not record the end; what the session mounted is gone, its record waits for the runner's end");
}

void keep_session(const AsRoot &root, const std::string &session_id)
{
    step_aside();
    char told = 0;
    ssize_t length = 0;
    do {
        length = read(STDIN_FILENO, &told, 1);
    } while (length < 0 && errno == EINTR);
    if (length == 1 || !defence_is_on("session-keeper")) return;
    // The kernel has killed what ran inside, or is doing so.
    fault_point("keeper-cleans");
    if (const auto agents = find_own_group(session_id)) empty_group(*agents, in_seconds(cleanup_group_seconds));
    if (!record_end_of_killed(root, session_id, in_seconds(cleanup_record_seconds)))
        throw Failure(ExitStatus::system_failure, "its runner was killed and still holds its record; the next sweep removes what is left");
    remove_session_with_scratch(root, session_id, cleanup_removal_seconds);
    leave_group(session_id);
    record_problem(session_id, "its runner was killed; what the session left was removed");
}

} // namespace pi_agent
