// Compares two looks at a tree.
#include "common/undo/compare.hpp"

namespace pi_agent {

namespace {

// Of one look and another: the very same file, unchanged. No program sets ctime.
bool is_untouched(const TreeEntry &one, const TreeEntry &other) noexcept
{
    return one.mode == other.mode &&
           (S_ISDIR(one.mode) || (one.inode == other.inode && one.changed == other.changed && one.size == other.size));
}

// Without ctime, which a rename changes, and another name of the file that is taken back.
bool has_same_times(const TreeEntry &one, const TreeEntry &other) noexcept
{
    return one.inode == other.inode && one.size == other.size && one.modified == other.modified;
}

// A file gets no set-id bit back, so one that lacks it is as it was.
bool has_same_mode(const TreeEntry &before, const TreeEntry &now) noexcept
{
    const std::uint32_t set_id = S_ISREG(now.mode) ? S_ISUID | S_ISGID | S_ISVTX : 0U;
    return (before.mode & ~set_id) == (now.mode & ~set_id) && (now.mode & set_id & ~before.mode) == 0;
}

bool is_as_left(const TreeLook &after, const std::string &path, const TreeEntry *now) noexcept
{
    const TreeEntry *left = after.find(path);
    if (left == nullptr || now == nullptr) return left == now && !after.is_left_out(path);
    return left->mode == now->mode && (S_ISDIR(now->mode) || has_same_times(*left, *now));
}

std::optional<TreeChangeKind> kind_of(const TreeEntry *before, const TreeEntry *now, const SameContent &is_same)
{
    if (before == nullptr) return TreeChangeKind::created;
    // What appeared and went within the start is nobody's.
    if (now == nullptr) return before->may_be_new ? std::nullopt : std::optional(TreeChangeKind::deleted);
    if (is_untouched(*before, *now))
        return before->may_be_new && !S_ISDIR(now->mode) ? std::optional(TreeChangeKind::changed) : std::nullopt;
    if ((before->mode & S_IFMT) != (now->mode & S_IFMT)) return TreeChangeKind::changed;
    if (S_ISLNK(now->mode) && before->target != now->target) return TreeChangeKind::changed;
    if (S_ISREG(now->mode) && !(before->kept == Kept::copied ? is_same(*before, *now) : has_same_times(*before, *now)))
        return TreeChangeKind::changed;
    return has_same_mode(*before, *now) ? std::nullopt : std::optional(TreeChangeKind::mode);
}

// A file that is gone and one that came are one file if inode, size and mtime say so: a file system gives an inode to another file at once.
void join_renamed(std::vector<TreeChange> &changes)
{
    std::map<std::uint64_t, TreeChange *> gone;
    for (auto &change : changes)
        if (change.kind == TreeChangeKind::deleted && S_ISREG(change.before->mode)) gone.emplace(change.before->inode, &change);
    for (auto &change : changes) {
        if (change.kind != TreeChangeKind::created || !S_ISREG(change.now->mode)) continue;
        const auto found = gone.find(change.now->inode);
        if (found == gone.end()) continue;
        const TreeEntry &was = *found->second->before;
        if (was.size != change.now->size || was.modified != change.now->modified) continue;
        change.kind = TreeChangeKind::renamed;
        change.from = was.path;
        change.before = was;
        found->second->path.clear(); // told once
        gone.erase(found);
    }
    std::erase_if(changes, [](const TreeChange &change) { return change.path.empty(); });
}

} // namespace

const char *to_string(TreeChangeKind kind) noexcept
{
    constexpr const char *names[] = {"created", "changed", "deleted", "renamed", "mode"};
    return names[static_cast<std::size_t>(kind)];
}

std::vector<TreeChange> compare_trees(const TreeLook &before, const TreeLook *after, const TreeLook &now, const SameContent &is_same)
{
    std::vector<TreeChange> changes;
    auto was = before.entries.begin();
    auto is = now.entries.begin();
    while (was != before.entries.end() || is != now.entries.end()) {
        const bool takes_was = is == now.entries.end() || (was != before.entries.end() && was->path <= is->path);
        const bool takes_is = was == before.entries.end() || (is != now.entries.end() && is->path <= was->path);
        const std::string &path = (takes_was ? was : is)->path;
        const TreeEntry *old = takes_was ? &*was++ : nullptr;
        const TreeEntry *young = takes_is ? &*is++ : nullptr;
        if ((old == nullptr && before.is_left_out(path)) || (young == nullptr && now.is_left_out(path))) continue;
        const auto kind = kind_of(old, young, is_same);
        if (!kind) continue;
        TreeChange change;
        change.kind = *kind;
        change.path = path;
        if (old != nullptr) change.before = *old;
        if (young != nullptr) change.now = *young;
        // A killed undo leaves a directory that it made before it gave it its mode; the next one finishes that.
        const bool is_half_back = *kind == TreeChangeKind::mode && S_ISDIR(young->mode) && after != nullptr && after->find(path) == nullptr;
        change.is_later = after != nullptr && !is_half_back && !is_as_left(*after, path, young);
        change.is_uncertain = old != nullptr && old->may_be_new;
        changes.push_back(std::move(change));
    }
    join_renamed(changes);
    return changes;
}

bool have_same_bytes(FdRef one, FdRef other)
{
    std::string first(1UL << 16U, '\0');
    std::string second(first.size(), '\0');
    for (off_t at = 0;;) {
        const ssize_t count = pread(one.get(), first.data(), first.size(), at);
        if (count < 0 || pread(other.get(), second.data(), second.size(), at) != count) return false;
        if (count == 0) return true;
        if (first.compare(0, static_cast<std::size_t>(count), second, 0, static_cast<std::size_t>(count)) != 0) return false;
        at += count;
    }
}

SameContent by_copies(const Checkpoint &checkpoint, FdRef root)
{
    return [&checkpoint, root](const TreeEntry &before, const TreeEntry &now) {
        if (before.size != now.size) return false;
        const UniqueFd file = open_in_tree(root, now.path, O_RDONLY);
        struct stat facts {};
        if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
        try {
            return have_same_bytes(checkpoint.open_copy(before), file);
        } catch (const Failure &) { // no whole copy
            return false;
        }
    };
}

} // namespace pi_agent
