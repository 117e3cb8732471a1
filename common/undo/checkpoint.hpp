// What a session may change, as it was before: the manifest of a tree, copies of its files, and the place where both are kept.
#pragma once

#include "common/base/channel.hpp"
#include "common/host/account.hpp"

#include <functional>
#include <set>

namespace pi_agent {

// Nanoseconds since 1970.
using FileTime = std::int64_t;
constexpr FileTime file_time(const timespec &time) noexcept
{
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}
FileTime time_now();

// --- What is in a tree.

// What became of a file's content. All but `copied` is content that cannot be taken back.
enum class Kept : std::uint8_t {
    none,       // not a regular file
    copied,     // whole, as it was before the session's start
    made_again, // below a directory that tools fill again (node_modules)
    too_large,  // for the policy's projects.undo.file
    no_room,    // in projects.undo.size, or on the disk
    young,      // changed after the start: perhaps by the session
    unreadable,
    unreached, // the session was over before
    last = unreached,
};
// Why there is no copy, for people.
const char *reason_of(Kept kept) noexcept;

struct TreeEntry {
    std::string path; // below the root, any bytes
    std::uint32_t mode = 0;
    std::uint64_t inode = 0, size = 0, blocks = 0; // blocks of 512 bytes
    FileTime modified = 0, changed = 0;            // ctime, which no program can set
    std::string target;                            // of a symlink
    Kept kept = Kept::none;
    bool may_be_new = false; // it and its directory are younger than the start, so the session may have made it

    static void fields(auto &archive, auto &self)
    {
        archive(self.path, self.mode, self.inode, self.size, self.blocks, self.modified, self.changed, self.target, self.kept,
                self.may_be_new);
    }
};

// One look at a tree. Entries are sorted by path, bytewise, so that a directory comes before what is in it.
struct TreeLook {
    FileTime time = 0; // before anything of the session ran; or of its end
    std::vector<TreeEntry> entries;
    std::vector<std::string> left_out; // directories that were not, or not wholly, looked into; "" is the root

    [[nodiscard]] const TreeEntry *find(std::string_view path) const noexcept;
    [[nodiscard]] bool is_left_out(std::string_view path) const noexcept;
    static void fields(auto &archive, auto &self) { archive(self.time, self.entries, self.left_out); }
};

using IsCancelled = std::function<bool()>;

struct WalkOrder {
    std::string first;            // below the root: the repository that is walked before all else
    std::size_t entries = 300000; // at most
    FileTime start = INT64_MAX;   // what is younger may be the session's
    IsCancelled is_cancelled = [] { return false; };
};
// `root` is a directory; the walk follows no link and crosses no mount. Never throws for what an agent can do to the tree.
TreeLook walk_tree(FdRef root, const WalkOrder &order);

// The root of a checkpoint: it was canonical, so a link on the way there has come since. Throws SystemFailure.
UniqueFd open_root_of_tree(const std::string &path);
// Opens what is at `path` beneath the root without following a link, without crossing a mount, without waiting. Empty on failure (errno).
UniqueFd open_in_tree(FdRef root, const std::string &path, int flags) noexcept;

struct CopyOrder {
    FileTime start = 0;               // as the checkpoint has it
    std::uint64_t device = 0;         // the same
    std::uint64_t size = 0, file = 0; // bytes: of all copies, and of one
    IsCancelled is_cancelled = [] { return false; };
    const std::set<std::string> *alone = nullptr; // the paths to copy; without them all
};
// The name of a copy: whatever has that inode and that ctime has those bytes. So a file that has not changed since an earlier checkpoint
// is not read again.
std::string copy_name(std::uint64_t device, const TreeEntry &entry);
// Copies the contents of regular files into the directory `copies`, the smallest first, unless they are there, and says in the entries
// what became of each. Reads nothing else: opening a pipe waits, and opening a device does things.
void copy_contents(FdRef root, FdRef copies, TreeLook &manifest, const CopyOrder &order);

// Copies one open file to another, with its holes. False on failure (errno; ECANCELED).
bool copy_content(FdRef from, FdRef into, const IsCancelled &is_cancelled);

// --- Where checkpoints are kept: a directory of the user's own, which no session sees.

// Root makes it at the first start of that user. Throws Failure(configuration) for one who is not in the user database.
std::string users_undo_directory(Uid user);

enum class CheckpointKind : std::uint8_t { session, undo };

struct CheckpointHead {
    static constexpr std::uint64_t type = 1; // the version of the form
    CheckpointKind kind = CheckpointKind::session;
    std::string root;
    FileTime start = 0;
    std::uint64_t device = 0; // of the root
    std::string place = {};   // below the root: the repository in which the session began, or the directory
    static void fields(auto &archive, auto &self) { archive(self.kind, self.root, self.start, self.device, self.place); }
};

// A checkpoint on disk. Open, it keeps others from removing it.
class Checkpoint {
public:
    std::string id; // of the session, or one of its own; empty while the session's is not known
    CheckpointHead head;
    bool is_live = false; // its session runs

    // Throws Failure(unavailable) for one that is damaged.
    [[nodiscard]] TreeLook before() const;
    // As the session left it; none if nobody saw its end.
    [[nodiscard]] std::optional<TreeLook> after() const;
    [[nodiscard]] bool has(const char *name) const noexcept { return faccessat(directory_.get(), name, F_OK, 0) == 0; }
    [[nodiscard]] FdRef directory() const noexcept { return directory_; }
    // The copy of an entry whose content is kept. Throws Failure for one that is not whole.
    [[nodiscard]] UniqueFd open_copy(const TreeEntry &entry) const;

private:
    friend class UndoStore;
    [[nodiscard]] TreeLook read(const char *name) const;
    bool read_head();
    UniqueFd directory_;
    std::string name_;
};

class UndoStore {
public:
    // Throws SystemFailure, ENOENT where root has not made it yet, and Failure(denied) for a directory of somebody else.
    static UndoStore open(const std::string &path);

    // Locks it until it is closed.
    [[nodiscard]] Checkpoint begin(const CheckpointHead &head) const;
    void name(Checkpoint &checkpoint, const std::string &id) const;
    void write(const Checkpoint &checkpoint, const char *name, const TreeLook &manifest) const;

    // Those whose manifest is written and whose id is known, the newest first.
    [[nodiscard]] std::vector<Checkpoint> list() const;
    // The directory of all copies. While it is open, none is removed.
    [[nodiscard]] UniqueFd open_copies() const;
    // Removes what is older than 14 days, more than ten, and what was left half made. Leaves the newest and what is open elsewhere, and
    // everything while somebody makes a checkpoint.
    void drop_old(FileTime now) const;
    // Reads every manifest to remove also what is more than `size` bytes, the oldest first, and the copies that nobody needs.
    void prune(std::uint64_t size, FileTime now) const;

private:
    explicit UndoStore(UniqueFd directory) : directory_(std::move(directory)) {}
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] Checkpoint open_checkpoint(const std::string &name) const;
    [[nodiscard]] UniqueFd lock_copies() const;
    [[nodiscard]] bool remove(const Checkpoint &checkpoint) const;
    std::vector<Checkpoint> drop(FileTime now) const; // NOLINT(modernize-use-nodiscard)
    UniqueFd directory_;
};

// A whole checkpoint of `root`, of which `look` is the first look, into `made`: it is on disk when this returns. Returns the look with
// what became of each file.
TreeLook take_checkpoint(const UndoStore &store, const Checkpoint &made, FdRef root, TreeLook look, CopyOrder copy);

} // namespace pi_agent
