// The child that keeps a project as it was before the session, and says at the end what changed.
#include "common/base/files.hpp"
#include "common/record/record_event.hpp"
#include "common/seams/seams.hpp"
#include "wrapper/aftermath.hpp"

#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <future>
#include <thread>

namespace pi_agent {

namespace {

constexpr std::size_t few_changes = 10;
constexpr std::size_t index_limit = 64UL << 20U; // bytes
constexpr int copy_niceness = 5;                 // with more, a busy host would keep copies from being made before an agent acts
constexpr int io_last = (2 << 13) | 7;           // ioprio_set(2): the last of best effort
constexpr int io_of_thread = 1;
constexpr std::chrono::milliseconds look_pause(2);
constexpr std::chrono::microseconds look_step(200);
constexpr std::chrono::milliseconds naming_pause(100);
constexpr std::chrono::milliseconds long_pause = std::chrono::minutes(1);
constexpr std::chrono::milliseconds pruning_pause = std::chrono::seconds(2); // the agent starts, and others' starts wait for the copies

struct Making {
    UndoStore store;
    Checkpoint checkpoint;
    bool is_late; // the session was over before the first look
};

// A home, or a whole host, is too much: of these the repository alone.
LookPlan plan_of_undo(const EarlyLook &look)
{
    LookPlan plan = plan_look(look.root, look.cwd, look.home, "", look.projects.shown());
    if (plan.root != "/" && plan.root != look.home) return plan;
    plan.root = plan.repository.empty() ? "" : (plan.root == "/" ? "" : plan.root) + "/" + std::exchange(plan.repository, "");
    return plan;
}

// Root makes the directory at the first start of a user, beside this process.
UndoStore wait_for_store(const std::atomic<bool> &is_cancelled)
{
    const auto path = users_undo_directory(Uid(getuid()));
    for (;;) {
        try {
            return UndoStore::open(path);
        } catch (const SystemFailure &failure) {
            if (failure.error_number() != ENOENT || is_cancelled) throw;
        }
        std::this_thread::sleep_for(naming_pause);
    }
}

// Of this thread alone: the end of a session is waited for.
void be_modest()
{
    setpriority(PRIO_PROCESS, 0, copy_niceness);       // best_effort
    syscall(SYS_ioprio_set, io_of_thread, 0, io_last); // best_effort
}

// What the session's end and its begin tell the thread that keeps.
struct Progress {
    std::atomic<bool> has_begun = false, has_ended = false;
};

// Whether other threads want half of all processors. "RUNNING/ALL", this thread among them, is the fourth word of /proc/loadavg (proc(5)).
bool is_crowded(FdRef loadavg)
{
    std::array<char, 100> text{};
    long others = 0;
    if (pread(loadavg.get(), text.data(), text.size() - 1, 0) <= 0) return false;
    if (std::sscanf(text.data(), "%*s %*s %*s %ld/", &others) != 1) return false;
    return --others > 0 && others * 2 >= sysconf(_SC_NPROCESSORS_ONLN);
}

// Beside the start the look goes on only while others leave processors free: two may be one core, so that even an idle thread slows its
// neighbour down. Once the agent runs, as fast as can be: of what the agent removes before, nobody knows.
TreeLook look_first(FdRef root, WalkOrder walk, const Progress &session)
{
    const UniqueFd loadavg = UniqueFd::adopt(open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
    Deadline next{}; // a question for each directory would cost more than many of them
    walk.is_cancelled = [&] {
        if (Clock::now() < next) return false;
        while (!session.has_begun && !session.has_ended && is_crowded(loadavg))
            std::this_thread::sleep_for(look_pause);
        next = Clock::now() + look_step;
        return false;
    };
    return walk_tree(root, walk);
}

Making make(const LookPlan &undo, const EarlyLook &look, const timespec &start, const Progress &session)
{
    const UniqueFd root = open_root_of_tree(undo.root);
    WalkOrder walk;
    walk.first = undo.repository;
    walk.start = file_time(start);
    TreeLook tree = look_first(root, walk, session);
    const bool is_late = session.has_ended;
    if (is_late) tree.left_out.emplace_back(); // what was there before is not known
    be_modest();
    UndoStore store = wait_for_store(session.has_ended);
    const auto &bounds = look.projects.undo;
    Checkpoint made =
        store.begin({CheckpointKind::session, undo.root, walk.start, examine(root, "looking at the project").st_dev, undo.repository});
    CopyOrder copy;
    copy.size = bounds.size.amount;
    copy.file = bounds.file.amount;
    copy.is_cancelled = [&] { return session.has_ended.load(); };
    take_checkpoint(store, made, root, std::move(tree), copy);
    store.drop_old(walk.start); // the rest of pruning takes longer than a short session
    return {std::move(store), std::move(made), is_late};
}

// Nobody waits for it: the session may end meanwhile, and this process with it. best_effort: the next one does it then.
void prune_beside(std::uint64_t size)
{
    std::thread([size] {
        try {
            be_modest();
            UndoStore::open(users_undo_directory(Uid(getuid()))).prune(size, time_now());
            release_start_up_memory();
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): what is damaged is told by whoever needs it
        }
    }).detach();
}

// The user's own entry in the journal, beside record_aftermath's. best_effort: a journal that is busy or absent takes none.
void record_changes(const std::vector<TreeChange> &changes, const std::string &session)
{
    std::map<std::string, std::size_t> counts;
    for (const auto &change : changes)
        ++counts[change.is_of_git() ? "of_git" : to_string(change.kind)];
    static_cast<void>(send_to_journal({{"MESSAGE", "session " + session + " changed " + std::to_string(changes.size()) + " files"},
                                       {"MESSAGE_ID", "8d0f3c5ae1b24f7c9a6be4c1f20d7735"},
                                       {"PRIORITY", "6"},
                                       {"SYSLOG_IDENTIFIER", "pi"},
                                       {"PI_AGENT_SESSION", session},
                                       {"PI_AGENT_CHANGES", nlohmann::json(counts).dump()}},
                                      journal_patience_milliseconds));
}

std::string look_back(const LookPlan &undo, const Making &made, bool has_person)
{
    const UniqueFd root = open_root_of_tree(undo.root);
    const Deadline deadline = in_seconds(aftermath_seconds);
    WalkOrder walk;
    walk.first = undo.repository;
    walk.entries *= 2; // of what the session left there may be more
    walk.is_cancelled = [&] { return Clock::now() >= deadline; };
    walk.start = time_now();
    const TreeLook after = walk_tree(root, walk);
    made.store.write(made.checkpoint, "after", after);
    const TreeLook before = made.checkpoint.before();
    const auto has_changed = [&](const TreeEntry &entry) {
        return !S_ISDIR(entry.mode) && entry.changed >= made.checkpoint.head.start; // directories: our own placeholders come and go
    };
    if (made.is_late && std::any_of(before.entries.begin(), before.entries.end(), has_changed))
        return has_person ? "pi: this session ended before its project had been looked at, so what it changed cannot be taken back\n" : "";
    const auto by_content = by_copies(made.checkpoint, root);
    // Contents are read only where times do not tell; a user waits, so what there is no time for counts as changed.
    const auto changes = compare_trees(
        before, nullptr, after, [&](const TreeEntry &was, const TreeEntry &now) { return !walk.is_cancelled() && by_content(was, now); });
    if (!changes.empty()) record_changes(changes, made.checkpoint.id);
    if (!has_person) return "";
    const auto missed = std::count_if(changes.begin(), changes.end(),
                                      [](const TreeChange &change) { return change.before && change.before->kept == Kept::unreached; });
    if (missed == 0) return changes_notice(changes, before, made.checkpoint);
    return changes_notice(changes, before, made.checkpoint) + "pi: the session ended before all was saved, so " + std::to_string(missed) +
           " of its changes cannot be taken back\n";
}

} // namespace

std::string changes_notice(const std::vector<TreeChange> &changes, const TreeLook &before, const Checkpoint &checkpoint)
{
    std::map<std::string, std::string> indexes; // of repositories, by their directories
    // Every index but the packed one of version 4 has whole paths, each between its length and a zero byte.
    const auto is_tracked = [&](const std::string &path) {
        std::string top = path;
        do {
            top.resize(top.rfind('/') == std::string::npos ? 0 : top.rfind('/'));
        } while (before.find(join_path(top, ".git")) == nullptr && !top.empty());
        if (!indexes.contains(top)) {
            const TreeEntry *index = before.find(join_path(top, ".git/index"));
            const bool is_kept = index != nullptr && index->kept == Kept::copied;
            indexes[top] = is_kept ? read_whole(checkpoint.open_copy(*index), index_limit, "git's index") : "";
        }
        const std::string name = path.substr(top.empty() ? 0 : top.size() + 1);
        return indexes[top].find(static_cast<char>(std::min<std::size_t>(name.size(), 0xfff) & 0xffU) + name + '\0') != std::string::npos;
    };
    std::size_t count = 0;
    for (const auto &change : changes)
        count += change.is_of_git() ? 0 : 1;
    // What came is lost to nobody.
    const bool is_outside =
        count <= few_changes && std::any_of(changes.begin(), changes.end(), [&](const TreeChange &change) {
            return !change.is_of_git() && change.before && !S_ISDIR(change.before->mode) && !is_tracked(change.before->path);
        });
    if (count <= few_changes && !is_outside) return "";
    return "pi: " + std::to_string(count) + (count == 1 ? " file" : " files") +
           " changed during this session. See them: pi-agentctl changes. Take them back: pi-agentctl undo\n";
}

void keep_undo(const EarlyLook &look, const timespec &start, FdRef channel, bool has_person)
{
    fault_point("keeping-undo");
    const LookPlan undo = plan_of_undo(look);
    Progress session;
    std::future<Making> making;
    if (!undo.root.empty()) making = std::async(std::launch::async, [&] { return make(undo, look, start, session); });
    std::optional<Making> made;
    std::string id;
    std::string problem;
    bool is_pruned = false;
    const auto take = [&] {
        try {
            made.emplace(making.get());
            made->store.name(made->checkpoint, id);
        } catch (const std::exception &failure) {
            problem = failure.what();
        }
    };
    for (bool has_ended = false; !has_ended;) {
        const bool waits = making.valid() && !id.empty();
        const bool may_prune = made && problem.empty() && !is_pruned;
        if (wait_for_input(channel, Clock::now() + (waits ? naming_pause : may_prune ? pruning_pause : long_pause))) {
            const auto word = receive_packet(channel, in_seconds(1));
            has_ended = !word || !id.empty();
            if (!word) id.clear();
            if (word) id = word->bytes;
            session.has_begun = true;
        } else if (waits && making.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
            take();
            release_start_up_memory();
        } else if (may_prune) {
            prune_beside(look.projects.undo.size.amount);
            is_pruned = true;
        }
    }
    session.has_ended = true;
    if (id.empty()) return; // the agent never ran, so the next start removes this
    if (making.valid()) take();
    std::string text;
    if (made && problem.empty()) text = look_back(undo, *made, has_person);
    made.reset(); // unlocked: whoever hears that the session is over may take it back
    if (!problem.empty()) text = "pi: what this session changed cannot be taken back: " + escape_for_display(problem) + "\n";
    send_record(channel, text, {}, in_seconds(1));
}

} // namespace pi_agent
