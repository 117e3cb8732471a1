// What is protected or masked in a project, found by a child with the user's identity: root parses no part of a repository (design rule 1).
#pragma once

#include "common/host/identity.hpp"
#include "runner/as_user/git_paths.hpp"
#include "runner/plan/sandbox_plan.hpp"

namespace pi_agent {

constexpr std::size_t guarded_texts_limit = 2 * protect_limit;

// The paths of one tree. All are relative to it, canonical when they were found, and any bytes.
struct GuardedPaths {
    std::vector<std::string> read_only;    // what exists, symlinks themselves included
    std::vector<std::string> placeholders; // what is missing and gets one, parents first
    std::vector<std::string> kept;         // directories that must stay where they are
    std::vector<std::string> masked;
    std::vector<std::string> notices;
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
