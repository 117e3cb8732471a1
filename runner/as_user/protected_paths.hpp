// What is protected or masked in a project, found by a child with the user's identity: root parses no part of a repository (design rule 1).
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/sandbox_plan.hpp"

namespace pi_agent {

// --- Where a path in the shown project really leads: follows its symlinks by hand and never out of the project.

// A tree that the agent is shown, as its search sees it.
struct GuardedTree {
    FdRef top;             // O_PATH, in the host's mount namespace
    std::string path;      // canonical, on the host
    std::string name = {}; // another one of it, if it has one
};

struct ShownPath {
    enum class Kind {
        directory,
        other,   // a file, or anything else except a directory or a symlink
        missing, // `path` exists, but it has no entry for the first component of `rest`
        outside, // leads out of the project
        hidden,  // on another file system that is mounted there, which the agent is not shown (Mounts::hidden)
        closed,  // `path` is a directory of the user's that the user may not enter: its owner may open it at any time
        endless, // through more symlinks than the kernel follows: nobody opens it, as long as these are as they are
        unclear, // the user may not look at it
    };
    Kind kind = Kind::unclear;
    std::string path;               // of what was found, canonical and relative to the top; any bytes
    std::string rest;               // what does not exist below `path`, where that is missing or no directory
    std::vector<std::string> links; // symlinks on the way, canonical themselves
};

// Whether `path` (canonical, relative to the top) is a directory of this process' account: its owner may change its mode at any time.
bool is_own_directory(const GuardedTree &tree, const std::string &path);

enum class Mounts { hidden, entered }; // in the tree

// Follows `path`, which is relative to `base` (canonical, relative to the top, a directory) or absolute, as a program inside would.
ShownPath find_shown(const GuardedTree &tree, const std::string &base, const std::string &path, Mounts mounts = Mounts::hidden);

// The text that the symlink at `path` of a tree gets in a copy of the tree: `target` itself, or for an absolute one the relative way. None
// where it leads out of the tree at any step, to nothing, or over or to a path that `may_lead_to` refuses: a symlink on the way is one in
// the copy only if that has it unchanged. Only looks: the text of a symlink decides where the next look goes, and never leaves the tree.
std::optional<std::string> find_kept_link(const GuardedTree &tree, const std::string &path, const std::string &target,
                                          const std::function<bool(const std::string &path)> &may_lead_to);

// --- Which paths of a git repository make git run something: what `protect: default` protects.

// What to put where a path is missing, so that nobody inside can make it.
enum class Standin {
    none,      // git reads it only where it already exists, or its parent would have to be made as well
    comment,   // a file that says nothing to git
    commondir, // a file that names the directory that holds it
    directory,
};

struct GuardedPath {
    std::string base; // canonical directory, relative to the top
    std::string path; // relative to that; may lead through links
    Standin standin = Standin::none;
    bool is_way = false;   // leads to what is protected: only its symlinks, and what is not a directory, are guarded
    bool stays = false;    // for a directory: it may be written to, but not renamed or removed
    bool is_inner = false; // of a submodule or worktree that the session was not started in: there may be hundreds
};

// Every directory from the top down to `below` that has an entry `.git`, whatever that is. git passes over one that it does not take for a
// repository, and an agent can make such a one inside the real repository.
std::vector<std::string> repositories_above(const GuardedTree &tree, const std::string &below);

// Takes only these repositories, as far as each is in this tree: its git directory, the git directories of its submodules and worktrees,
// and the `.git` files that lead there. Throws Failure(limit) for more than `most` paths. Throws Failure(configuration) for a file that git
// reads there and the user cannot: its owner could change it inside, and what it leads to would not be protected.
std::vector<GuardedPath> git_executing_paths(const GuardedTree &tree, const std::vector<std::string> &repositories, std::size_t most);

// The same for a tree that is a git directory itself: of a repository, or a worktree's own.
std::vector<GuardedPath> gitdir_executing_paths(const GuardedTree &tree, std::size_t most);

// The content of a small regular file of a tree, symlinks followed within the tree; none when there is no such file. `path` is relative to
// `base`. Throws Failure(configuration) for one that cannot be read.
std::optional<std::string> small_text(const GuardedTree &tree, const std::string &base, const std::string &path);

// The git directory of `repository` that all of its worktrees share; none where it is not in this tree. Throws as small_text.
std::optional<std::string> shared_git_directory(const GuardedTree &tree, const std::string &repository);

// Reads "gitdir: PATH" of a `.git` file; none where the text has no such line.
std::optional<std::string> gitdir_in(const std::string &text);

// --- Placeholders for protected paths that do not exist in a project, so that the agent cannot make them. They are made and removed as the
// user. One that is left behind (after a power cut) has no effect, and a later session in the same repository takes it over.

// Makes `path` (relative to `top`, its parent exists) unless something is there. False where nobody with the user's rights can make it.
// Throws Failure(configuration) where the user would only have to give themselves permission, because the agent could do that too.
bool make_placeholder(FdRef top, const std::string &path, Standin standin);

// Which placeholder is at `path`: a file with our own text, or a directory with our own mode. None for anything else.
std::optional<Standin> find_placeholder(FdRef top, const std::string &path);

// Removes it if it still is one, is empty, and no session has it mounted.
void remove_placeholder(FdRef top, const std::string &path);

// --- What is protected and masked in the trees of a session.

constexpr std::size_t guarded_texts_limit = 2 * protect_limit;

// The paths of one tree. All are relative to it, canonical when they were found, and any bytes.
struct GuardedPaths {
    std::vector<std::string> read_only;    // what exists, symlinks themselves included
    std::vector<std::string> placeholders; // what is missing and gets one, parents first
    std::vector<std::string> kept;         // directories that must stay where they are
    std::vector<std::string> masked, notices;
    std::vector<std::string> inner; // of `read_only` and `placeholders`: those of submodules and worktrees

    static void fields(auto &archive, auto &self)
    {
        for (auto *some : {&self.read_only, &self.placeholders, &self.kept, &self.masked, &self.notices, &self.inner})
            archive.bounded(*some, guarded_texts_limit);
    }
};

// A root of which a session shows a part. `inside`: where that lies, relative to the root.
struct GuardedRoot {
    GuardedTree root;
    std::string inside;
};

// What to search: the project, in it the repository and the working directory (both relative to it), and git directories of that repository
// elsewhere.
struct GuardedTrees {
    GuardedTree project;
    std::optional<std::string> repository;
    std::string below;
    std::vector<GuardedTree> git_directories;
    std::optional<GuardedRoot> around = {}; // of the project; none where it is the root itself
};

// In the child: finds the paths and sends an answer for each tree, the project first. At each order it makes the placeholders of one tree
// and says which of them exist to be mounted over. It ends when the other end is closed.
void serve_guarded_paths(const AsUser &user, const GuardedTrees &trees, const ProjectsPolicy &policy, FdRef channel);

std::string order_for_tree(std::size_t index);

// In the parent. Throws ProtocolError for what no such child sends: the rest of the runner may rely on every path being beneath its tree.
GuardedPaths decode_guarded_paths(std::string_view bytes);
std::vector<std::string> decode_paths(std::string_view bytes);

// --- What `projects.mask` hides in a project: found by walking it, in a child that is the user.

struct MaskedPaths {
    std::vector<std::string> paths; // relative to the top; a directory stands for all in it
    std::vector<std::string> notices;
};

// Symlinks are neither masked nor followed, and `.git` is not entered. A directory of the user's that the user may not search is masked as
// a whole. Throws Failure(limit) when the project is too large to search, or when too much is found: never an incomplete answer.
MaskedPaths find_masked(const GuardedTree &tree, const std::vector<PolicyPath> &patterns);

// The same where a session shows a part of a root: patterns with a '/' count from the top of both. The paths are relative to that part.
// With `all`, files that are masked elsewhere in the root count as well: a name of theirs in the part (a hard link) is masked.
MaskedPaths find_masked(const GuardedRoot &part, bool all, const std::vector<PolicyPath> &patterns);

// --- Gives protected files a single name: through another one (a hard link) a file can be changed, whatever is mounted over the first.

// In a child that is the user. It does not matter who made the other name: a session in another repository of the root could have.
class SingleNames {
public:
    explicit SingleNames(const GuardedTree &tree);

    // Checks the file at `path` (canonical, relative to the top), or every file in the directory there. A file with several names that the
    // user may change is replaced by a copy with the same owner, mode (without setuid and setgid), times and attributes. Throws
    // Failure(configuration) for one that cannot be replaced, and Failure(limit) where there is too much to look at or to replace.
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
