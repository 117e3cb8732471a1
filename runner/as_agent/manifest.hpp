// What the last syncs put into an agent's home, in an append-only log; and the trees that are brought in once.
#pragma once

#include "common/host/beneath.hpp"
#include "common/host/identity.hpp"
#include "runner/as_agent/documents.hpp"
#include "runner/as_agent/sync_messages.hpp"

#include <unordered_map>

namespace pi_agent {

// What the last syncs put into an agent's home, in an append-only log that survives being cut off anywhere; and what is there now.

// What stat says about a file inside. The agent can set back a size and a time of modification, but not the time of change.
struct InsideFacts {
    std::uint64_t inode = 0; // 0: not a copy that the sync made
    std::uint64_t size = 0;
    std::int64_t changed = 0;
    friend bool operator==(const InsideFacts &, const InsideFacts &) = default;

    static void fields(auto &archive, auto &self) { archive(self.inode, self.size, self.changed); }
};

InsideFacts inside_facts(const struct stat &facts) noexcept;

struct ManifestEntry {
    bool is_directory = false;
    HostFacts host;     // of the file that was copied; all 0 while a copy is under way
    InsideFacts inside; // of the copy
    std::int64_t recorded = 0;
    // False when either side was written so shortly before that a later write may have the same times: compare the bytes once.
    [[nodiscard]] bool is_settled() const noexcept;
    bool was_seen = false; // in this sync, not stored
    bool is_link = false;  // a symlink that the user's config has, recorded instead of its target
};

// A document that is merged by key: what the host had, what was chosen of host and agent, and what was written, as JSON text.
struct DocumentBase {
    std::string host;
    std::string chosen;
    std::string written;
    friend bool operator==(const DocumentBase &, const DocumentBase &) = default;
};

// Root owns the files; only the writer reads and writes them, through descriptors that it was given.
class Manifest {
public:
    // Reads `log`, and cuts off what a sync that was killed left half written. `spare` takes a rewritten log (rewrite()). Both O_RDWR.
    Manifest(FdRef log, FdRef spare);
    Manifest(const Manifest &) = delete;
    Manifest &operator=(const Manifest &) = delete;
    ~Manifest() = default;

    using Entries = std::unordered_map<std::string, ManifestEntry>;
    [[nodiscard]] Entries &entries() noexcept { return entries_; }
    [[nodiscard]] ManifestEntry *find(const std::string &path);
    [[nodiscard]] const DocumentBase *document(const std::string &name) const;

    // Call it before making a path that the log does not know: if the sync is killed then, the next one does not take the leftover for the
    // agent's. On disk after flush().
    void intend(const std::string &path, bool is_directory, bool is_link = false);
    void set(const std::string &path, ManifestEntry entry);
    void forget(const std::string &path);
    void set_document(const std::string &name, const DocumentBase &base);

    void flush();
    // Writes all live entries into `spare` when the log is far longer than they are, and goes on there. True when it did: root then puts it
    // in place.
    bool rewrite_if_long();

private:
    bool take(std::string_view record);
    void append(const std::string &record);
    bool insert(const std::string &path, const ManifestEntry &entry); // true when it is new
    void erase(const std::string &path);

    FdRef log_;
    FdRef spare_;
    Entries entries_;
    // In the order in which they were recorded, which is about the order of a listing: a path is most often the one after the last found.
    std::vector<Entries::value_type *> order_; // emptied when an entry goes
    std::size_t next_ = 0;
    std::unordered_map<std::string, DocumentBase> documents_;
    std::string pending_;
    std::size_t stale_bytes_ = 0; // of records that a later one replaced, estimated
    std::size_t log_bytes_ = 0;
};

std::int64_t wall_clock_nanoseconds() noexcept;

// Has all of an agent's home join a project of quotas (join_tree). A file that the sync made and the agent has not changed is still one.
// `logs`: of the manifest, and the spare one.
void join_home(const AsUser &agent, FdRef home, std::pair<FdRef, FdRef> logs, std::uint32_t project, FdRef channel);

// Opens directories of the agent's home. Paths come directory by directory, so it keeps the last one open.
class LastDirectory {
public:
    explicit LastDirectory(FdRef top) : top_(top) {}

    // Opens a directory only to look. None, with errno, when it does not exist or a symlink is on the way.
    [[nodiscard]] FdRef look(const std::string &path);
    // Opens it to remove what is in it; none in the same cases.
    [[nodiscard]] FdRef find(const std::string &path) { return open(path, find_own_directory_beneath); }
    // Makes it.
    [[nodiscard]] FdRef make(const std::string &path);
    // What is at `path`; only looks. `known`: what the manifest has of it, none when it has nothing.
    [[nodiscard]] InsideState state(const std::string &path, const ManifestEntry *known);
    // Call it after something was removed.
    void forget() noexcept { known_ = false; }

private:
    FdRef open(const std::string &path, UniqueFd (*opened)(FdRef top, const std::string &path));

    FdRef top_;
    std::string path_;
    UniqueFd fd_;
    int problem_ = 0;
    bool known_ = false;
};

// Trees that are brought in once (class `once`): the user's as long as the agent changes nothing in one, then the agent's, as a whole.

// An entry of the listing; `number` of a file.
struct ListedOnce {
    ListedEntry entry;
    std::uint64_t number = 0;
    bool known = false;
    HostState host = {};
    InsideState inside = {};
};

// Paths are relative to the agent's home. Only looks.
class OnceTrees {
public:
    OnceTrees(const ConfigClasses &classes, LastDirectory &inside) : classes_(classes), inside_(inside) {}

    void take(const ListedEntry &entry, std::uint64_t number, const ManifestEntry *known);
    // Call it when all entries are taken. Finds out what the agent changed. `unreadable`: what could not be listed completely.
    void judge(Manifest &manifest, const std::vector<std::string> &unreadable);

    [[nodiscard]] const std::vector<ListedOnce> &entries() const noexcept { return entries_; }
    // The state that counts for one of these, after judge(): when the agent changed a part, all of it counts as changed.
    [[nodiscard]] InsideState state_of(const std::string &path, InsideState itself) const;
    // The trees of which the user has something new that stays outside.
    [[nodiscard]] std::vector<std::string> left_behind() const;

private:
    [[nodiscard]] std::string whole_of(const std::string &path) const;

    const ConfigClasses &classes_;
    LastDirectory &inside_;
    std::vector<ListedOnce> entries_;
    std::set<std::string> changed_; // wholes
};

// The path within the config directory; empty for a path elsewhere, and for that directory itself.
std::string_view path_in_config(std::string_view path) noexcept;

} // namespace pi_agent
