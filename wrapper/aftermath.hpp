// What a session leaves: the search of the tree that it saw, what of it runs code outside, and the notice.
#pragma once

#include "common/undo/compare.hpp"
#include "wrapper/session_client.hpp"

#include <ctime>

namespace pi_agent {

// --- Searches the directory that a session sees, within bounds and without ever leaving it, and compares two looks.

// A hostile tree cannot make the search hang, read something else, or go on for ever.

// The budget of one look. Once spent, it stays spent.
class Budget {
public:
    // It calls `is_cancelled` from time to time.
    Budget(std::size_t entries, Deadline deadline, std::function<bool()> is_cancelled)
        : entries_(entries), deadline_(deadline), is_cancelled_(std::move(is_cancelled))
    {
    }
    // One entry of a directory, or one file.
    void take_one() noexcept;
    [[nodiscard]] bool is_spent() const noexcept { return spent_; }

private:
    std::size_t entries_;
    Deadline deadline_;
    std::function<bool()> is_cancelled_;
    unsigned until_clock_ = 1; // reading the clock takes as long as some entries
    bool spent_ = false;
};

struct DirectoryEntry {
    std::string name;
    unsigned char type; // DT_REG, DT_DIR, DT_LNK or another (readdir(3)); never DT_UNKNOWN
};

struct Listing {
    enum class Found { listed, nothing, unreadable };
    Found found = Found::nothing; // nothing: also if it is not a directory
    struct stat facts {};
    std::vector<DirectoryEntry> entries; // those that the budget allowed
};

enum class Links { follow, refuse }; // inside the tree; a symlink out of it is never followed

class ShownTree {
public:
    // `path` is canonical. Empty if it cannot be opened.
    static std::optional<ShownTree> open(const std::string &path, Budget &budget);

    [[nodiscard]] const std::string &path() const noexcept { return path_; }
    [[nodiscard]] std::string absolute(const std::string &below) const { return below.empty() ? path_ : path_ + "/" + below; }
    // The part of an absolute path below the root, by its text; "" for the root itself.
    [[nodiscard]] std::optional<std::string> below(const std::string &absolute) const;

    // `path` is beneath the root, "" for the root itself. Nothing if the budget is spent, if nothing exists there, or if it is outside this
    // tree or on another mount.
    [[nodiscard]] std::optional<struct stat> look(const std::string &path, Links last) const;
    [[nodiscard]] std::optional<std::string> link_target(const std::string &path) const;
    // At most `limit` bytes of a regular file; empty for anything else.
    [[nodiscard]] std::optional<std::string> read(const std::string &path, std::size_t limit) const;
    [[nodiscard]] Listing list(const std::string &path, Links links) const;
    [[nodiscard]] Budget &budget() const noexcept { return *budget_; }

private:
    ShownTree(std::string path, UniqueFd root, Budget &budget) : path_(std::move(path)), root_(std::move(root)), budget_(&budget) {}
    [[nodiscard]] UniqueFd open_path(const std::string &path, Links last) const; // O_PATH
    std::string path_;
    UniqueFd root_;
    Budget *budget_;
};

// The text of a path without `.`, `..` and double slashes.
std::string normal_path(const std::string &path);

// If the first look found no such thing.
enum class Appearing {
    counts,
    counts_in_known_directory, // a directory that came as a whole is on nobody's PATH yet
    is_ordinary,
};

// One thing that would run code, as it was found.
struct Mark {
    std::string identity;               // inode, size, times and mode: equal means unchanged
    std::optional<std::string> content; // if it is small: a new identity with equal content is not a change
    timespec changed{};                 // ctime, which no program can set
    Appearing appearing = Appearing::counts;
    bool found_first = false; // in the places that are searched first
};

struct Snapshot {
    std::map<std::pair<std::string, std::string>, Mark> marks; // by absolute path and kind
    std::set<std::string> program_directories;                 // that could be listed
    bool has_first_places = false;                             // the first places are complete
    bool has_project = false;                                  // and the repository, or without one the working directory
    bool is_complete = false;                                  // and everything else is
    std::vector<std::string> not_looked_at;                    // directories that were left out; the first few
    std::size_t more_not_looked_at = 0;
    std::string left_out_because; // for the notice: the bound that was met
};

struct Finding {
    std::string path; // absolute, any bytes
    std::string what;
    bool appeared; // otherwise it changed
};

// `start`: a time before any process of the session ran. If the first look was incomplete, or the agent may have been faster, it proves
// nothing about things older than that.
std::vector<Finding> compare(const Snapshot &before, const Snapshot &after, const timespec &start);

// Strictly.
bool is_later(const timespec &time, const timespec &than) noexcept;

// Writes findings in the shown tree into a snapshot.
class Marker {
public:
    Marker(const ShownTree &tree, Snapshot &snapshot) : tree_(tree), snapshot_(snapshot) {}

    [[nodiscard]] const ShownTree &tree() const noexcept { return tree_; }
    [[nodiscard]] Snapshot &snapshot() const noexcept { return snapshot_; }
    // What is marked until the other call is in the places that are searched first.
    void begin_first_places() noexcept { first_ = true; }
    void end_first_places() noexcept { first_ = false; }

    // A file below the root, or a symlink: its content, and its target inside the tree. Directories are not marked.
    void file(const std::string &path, const std::string &what, Appearing appearing = Appearing::counts);
    // A part of that file, with the file's facts: equal content is not a change. Without content, any change counts.
    void part(const std::string &path, const std::string &what, const struct stat &facts, std::optional<std::string> content,
              Appearing appearing = Appearing::counts);
    // A file with several names (hard links): another name can change it later, whatever protects this one.
    void other_names(const std::string &path, const std::string &what);
    // A thing that cannot be read, or is too large.
    void whole(const std::string &path, const std::string &what, const struct stat &facts) { part(path, what, facts, std::nullopt); }
    // Programs in a directory from which programs are started, and files that a shell reads (`activate`); not what is below.
    void programs(const std::string &directory, Appearing appearing);
    // What is in a directory; one that cannot be listed is marked.
    std::vector<DirectoryEntry> entries(const std::string &directory);
    // A directory that cannot be listed hides what is in it.
    void unreadable(const std::string &directory, const struct stat &facts)
    {
        // Its times change with every file in it.
        part(directory, "directory that cannot be looked into", facts, std::to_string(facts.st_mode));
    }

private:
    void add(const std::string &path, const std::string &what, Mark mark);
    const ShownTree &tree_;
    Snapshot &snapshot_;
    bool first_ = false;
    std::size_t content_left_ = std::size_t{32} << 20U; // bytes kept, all together
};

// Files from which editors, shells and package managers take commands by their name, and which part of each matters. `name`: an entry of a
// visited directory, of any type. Cheap for other names.
void mark_file_doors(Marker &marker, const std::string &directory, std::string_view name);

// What npm would run from a package.json: text for comparison, and whether a plain `npm install` runs some of it. Empty text: nothing.
struct PackageScripts {
    std::string text;
    bool run_at_install = false;
};
PackageScripts read_package_scripts(std::string_view json);

// Where git takes programs from in one repository: hooks, configuration, attributes, submodules, worktrees, and files that lead elsewhere.
class RepositoryDoors {
public:
    // `home`: the user's home, for `~/` in git's configuration.
    RepositoryDoors(Marker &marker, std::string home) : marker_(marker), home_(std::move(home)) {}

    // `directory` holds an entry `.git` of this type (readdir(3)).
    void worktree(const std::string &directory, unsigned char type_of_git);
    // A bare git directory, whatever its name.
    void git_directory(const std::string &directory) { repository(directory, std::nullopt, 0); }
    // A directory that git would use as a repository, without the name `.git`.
    void embedded(const std::string &directory);

private:
    void repository(const std::string &gitdir, const std::optional<std::string> &worktree, unsigned depth);
    std::string configuration(const std::string &path, unsigned depth);
    void hooks(const std::string &directory, unsigned depth);
    void hook_managers(const std::string &hooks, const std::string &worktree);
    void unfinished(const std::string &gitdir);
    void modules(const std::string &directory, unsigned depth);
    void linked_worktrees(const std::string &directory, unsigned depth);
    void git_file(const std::string &path, const std::string &directory);
    [[nodiscard]] std::optional<std::string> beneath(const std::string &text, const std::string &base) const;

    Marker &marker_;
    std::string home_;
    std::set<std::string> seen_;
};

// --- The aftermath notice: looks at the shown tree before the agent runs and after it has ended, and lists what came that runs code
// outside.

// One look at everything that a session was shown: what there would run code outside.
struct LookPlan {
    std::string root;                           // the shown root; canonical
    std::string repository;                     // below it, nearest to the working directory; searched first
    std::vector<std::string> git_directories;   // of that repository, if they are elsewhere; canonical, absolute
    std::vector<std::string> path_entries;      // of the user's PATH, inside the root; canonical, absolute
    std::string home;                           // the user's
    timespec start{};                           // before anything of the session ran
    AgentPlaces agents = {};                    // links do not leave these (common/as_user/user_paths.hpp)
    std::vector<std::string> read_as_user = {}; // by the next start
};

// The first look may still run when the agent starts. So anything newer than `start` does not count as old.
Snapshot look_at_doors(const LookPlan &plan, Budget &budget, bool is_first_look);

// `root` holds `cwd`; `path` is the user's PATH, whose relative entries count from `cwd`. With the scope `project` only the repository is
// shown.
LookPlan plan_look(const std::string &root, const std::string &cwd, const std::string &home, const std::string &path, ProjectScope scope);

// At most a dozen lines, each beginning with "pi: "; empty if there is nothing to report. Paths below `cwd` are relative to it. `after`
// says whether the look was complete. `recorded_session` is the session in the journal's record; empty if the journal took none.
std::string aftermath_notice(const std::vector<Finding> &findings, const Snapshot &after, const std::string &cwd,
                             const std::string &recorded_session);

// Text about new links that no start follows (common/as_user/user_paths.hpp); else empty.
std::string links_notice(const std::set<std::string> &before, const std::set<std::string> &after);

// A JSON array of {path, kind, change}; the first few hundred. Names are escaped as for people.
std::string aftermath_json(const std::vector<Finding> &findings);

// The user's own entry in the journal. Anybody could write it, and the journal says who did (_UID). Waits for a busy
// journal, at most half a second; false if it refused the entry, or if there is no journal.
bool record_aftermath(const std::vector<Finding> &findings, const std::string &session);

constexpr int journal_patience_milliseconds = 500;     // at the end of a session, which its user waits for
constexpr int aftermath_seconds = 2;                   // for one look
constexpr std::size_t aftermath_entries = 300'000;     // in one look
constexpr std::size_t aftermath_link_entries = 20'000; // of what a start reads as the user

// Keeps what the session may change as it was, and says what it changed: pi's other child, in undo_look.cpp. `channel` brings the session's
// id when it has begun, and one more packet when it has ended; the answer is whole lines. Without a person who reads them, at a terminal,
// these are of what failed alone.
void keep_undo(const EarlyLook &look, const timespec &start, FdRef channel, bool has_person);

// The line about a session that changed more than a few files, or what was there before and git did not track; else empty.
std::string changes_notice(const std::vector<TreeChange> &changes, const TreeLook &before, const Checkpoint &checkpoint);

using RunSession = std::function<AgentEnded(SessionId &session)>;
// Runs a session and looks at what it leaves, on the host where it runs: with the user's rights, in a child process for which only the
// notice waits.
AgentEnded run_watched(const EarlyLook &look, Program program, const RunSession &run);

} // namespace pi_agent
