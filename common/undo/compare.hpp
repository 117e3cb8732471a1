// What changed in a tree since its checkpoint, and who may have changed it.
#pragma once

#include "common/undo/checkpoint.hpp"

namespace pi_agent {

enum class TreeChangeKind : std::uint8_t { created, changed, deleted, renamed, mode };
const char *to_string(TreeChangeKind kind) noexcept;

struct TreeChange {
    TreeChangeKind kind = TreeChangeKind::changed;
    std::string path;
    std::string from;                     // renamed: the path before
    std::optional<TreeEntry> before, now; // of a renamed file `before` is at `from`
    bool is_later = false;                // it is not as the session left it: somebody changed it since
    bool is_uncertain = false;            // the session may have made it, or it was there before
    [[nodiscard]] bool is_of_git() const noexcept { return ("/" + path + "/").find("/.git/") != std::string::npos; }
};

// Whether a regular file of both looks has the same bytes. Asked where the kernel's times do not prove it.
using SameContent = std::function<bool(const TreeEntry &before, const TreeEntry &now)>;

// The tree as it is now against the checkpoint, sorted by path. `after`: as the session left it, if that is known. What one of the looks
// left out is not compared. A file whose content is not kept is compared by size and mtime.
std::vector<TreeChange> compare_trees(const TreeLook &before, const TreeLook *after, const TreeLook &now, const SameContent &is_same);

// By the copies of a checkpoint, and the files below `root`. Both are borrowed.
SameContent by_copies(const Checkpoint &checkpoint, FdRef root);

// Whether two open files have the same bytes. False where one cannot be read.
bool have_same_bytes(FdRef one, FdRef other);

} // namespace pi_agent
