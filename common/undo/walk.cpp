// Looks at a tree that others change meanwhile, and copies contents out of it: by descriptor, beneath its root.
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "common/undo/checkpoint.hpp"

#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>

#include <climits>
#include <deque>
#include <unordered_set>

namespace pi_agent {

namespace {

// Tools fill them again. `target` counts only with cargo's mark in it.
constexpr std::string_view made_again_names = "node_modules __pycache__ .venv venv .tox .mypy_cache .pytest_cache .ruff_cache .gradle";
constexpr std::size_t copy_step = 1UL << 20U; // bytes
constexpr std::uint64_t block_size = 512;
constexpr mode_t placeholder_mode = 01755; // of the product's own directories, there while a session runs

TreeEntry entry_of(std::string path, const struct stat &facts)
{
    TreeEntry entry;
    entry.path = std::move(path), entry.mode = facts.st_mode, entry.inode = facts.st_ino;
    entry.size = static_cast<std::uint64_t>(facts.st_size), entry.blocks = static_cast<std::uint64_t>(facts.st_blocks);
    entry.modified = file_time(facts.st_mtim), entry.changed = file_time(facts.st_ctim);
    entry.kept = S_ISREG(facts.st_mode) ? Kept::unreached : Kept::none;
    return entry;
}

class Walk {
public:
    Walk(FdRef root, const WalkOrder &order) : root_(root), order_(order) {}

    TreeLook run()
    {
        manifest_.time = order_.start;
        struct stat facts {};
        if (fstat(root_.get(), &facts) == 0) {
            device_ = facts.st_dev;
            if (!order_.first.empty()) walk({order_.first});
            walk({""});
        }
        const auto by_path = [](const TreeEntry &one, const TreeEntry &other) { return one.path < other.path; };
        std::sort(manifest_.entries.begin(), manifest_.entries.end(), by_path);
        std::sort(manifest_.left_out.begin(), manifest_.left_out.end());
        return std::move(manifest_);
    }

private:
    struct Place {
        std::string path;
        bool made_again = false;
        bool is_young = false; // the session may have made it
    };

    void walk(Place from)
    {
        for (places_.push_back(std::move(from)); !places_.empty(); places_.pop_front()) {
            spent_ = spent_ || manifest_.entries.size() >= order_.entries || order_.is_cancelled();
            spent_ ? manifest_.left_out.push_back(places_.front().path) : visit(places_.front());
        }
    }

    void visit(const Place &place)
    {
        DirectoryStream stream(open_in_tree(root_, place.path, O_RDONLY | O_DIRECTORY));
        struct stat facts {};
        if (!stream || fstat(stream.fd().get(), &facts) != 0) return manifest_.left_out.push_back(place.path);
        const bool is_young = place.is_young || file_time(facts.st_ctim) >= order_.start;
        const bool is_cargos = place.path.ends_with("target") && faccessat(stream.fd().get(), "CACHEDIR.TAG", F_OK, 0) == 0;
        const dirent *found = nullptr;
        while ((errno = 0, found = stream.next()) != nullptr) {
            if (manifest_.entries.size() >= order_.entries) return manifest_.left_out.push_back(place.path);
            take(stream.fd(), found->d_name, {place.path, place.made_again || is_cargos, is_young});
        }
        if (errno != 0) manifest_.left_out.push_back(place.path);
    }

    // `above`: what holds in its directory.
    void take(FdRef directory, const char *name, const Place &above)
    {
        struct stat facts {};
        if (fstatat(directory.get(), name, &facts, AT_SYMLINK_NOFOLLOW) != 0) return; // gone meanwhile
        TreeEntry entry = entry_of(join_path(above.path, name), facts);
        if (S_ISLNK(facts.st_mode)) entry.target = read_link(directory, name);
        if (is_placeholder(directory, name, facts)) return;
        entry.may_be_new = above.is_young && entry.changed >= order_.start;
        if (S_ISREG(facts.st_mode) && above.made_again) entry.kept = Kept::made_again;
        if (S_ISDIR(facts.st_mode) && entry.path != order_.first) {
            if (facts.st_dev != device_ || entry.path.size() >= PATH_MAX)
                manifest_.left_out.push_back(entry.path);
            else
                places_.push_back({entry.path, above.made_again || has_word(made_again_names, name), entry.may_be_new});
        }
        if (!S_ISDIR(facts.st_mode) || (facts.st_mode & 07777U) != placeholder_mode) manifest_.entries.push_back(std::move(entry));
    }

    // The product's own, there while a session runs.
    static bool is_placeholder(FdRef directory, const char *name, const struct stat &facts)
    {
        for (const auto text : {placeholder_comment, placeholder_commondir}) {
            if (!S_ISREG(facts.st_mode) || facts.st_size != static_cast<off_t>(text.size())) continue;
            const UniqueFd file = open_in_tree(directory, name, O_RDONLY);
            std::string content(text.size(), '\0');
            if (file && pread(file.get(), content.data(), content.size(), 0) == facts.st_size && content == text) return true;
        }
        return false;
    }

    FdRef root_;
    const WalkOrder &order_;
    TreeLook manifest_;
    std::deque<Place> places_;
    dev_t device_ = 0;
    bool spent_ = false;
};

// Git's objects are many and seldom lost, so they come after all else.
bool comes_later(const TreeEntry &entry) noexcept
{
    return entry.path.starts_with(".git/objects/") || entry.path.find("/.git/objects/") != std::string::npos;
}

class Copier {
public:
    Copier(FdRef root, FdRef copies, const CopyOrder &order)
        : root_(root), copies_(copies), order_(order), unfinished_("new-" + random_hex(8))
    {
    }

    void take(TreeEntry &entry)
    {
        const std::uint64_t bytes = std::min(entry.size, entry.blocks * block_size); // a file may have holes
        if (entry.changed >= order_.start && defence_is_on("undo-young")) {
            entry.kept = Kept::young;
        } else if (entry.size == 0 || names_.contains(entry.inode)) { // nothing to copy, or another name of the same file
            entry.kept = Kept::copied;
        } else if (bytes > order_.file && defence_is_on("undo-bounds")) {
            entry.kept = Kept::too_large;
        } else if (is_full_ || (used_ + bytes > order_.size && defence_is_on("undo-bounds"))) {
            entry.kept = Kept::no_room;
        } else {
            entry.kept = is_there(entry) ? Kept::copied : copy(entry);
        }
        if (entry.kept == Kept::copied && entry.size > 0 && names_.insert(entry.inode).second) used_ += bytes;
    }

private:
    // With its size: a host that went down may have lost what was written last.
    [[nodiscard]] bool is_there(const TreeEntry &entry) const
    {
        struct stat facts {};
        return fstatat(copies_.get(), copy_name(order_.device, entry).c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
               static_cast<std::uint64_t>(facts.st_size) == entry.size;
    }

    Kept copy(const TreeEntry &entry)
    {
        const UniqueFd from = open_in_tree(root_, entry.path, O_RDONLY);
        if (!from) return errno == EACCES || errno == EPERM ? Kept::unreadable : Kept::young;
        const auto is_young = [&] { return !is_as_before(from, entry) && defence_is_on("undo-young"); };
        if (is_young()) return Kept::young;
        const UniqueFd into = open_at(copies_, unfinished_, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (into && has_room(into) && copy_content(from, into, order_.is_cancelled) && !is_young() &&
            renameat(copies_.get(), unfinished_.c_str(), copies_.get(), copy_name(order_.device, entry).c_str()) == 0)
            return Kept::copied;
        const int reason = errno;
        unlinkat(copies_.get(), unfinished_.c_str(), 0);
        if (is_young()) return Kept::young;
        if (reason == ECANCELED) return Kept::unreached;
        is_full_ = is_full_ || reason == ENOSPC || reason == EDQUOT;
        return is_full_ ? Kept::no_room : Kept::unreadable;
    }

    // The last of a disk is for others.
    static bool has_room(FdRef file)
    {
        struct statvfs disk {};
        if (fstatvfs(file.get(), &disk) != 0) return false;
        errno = ENOSPC;
        return disk.f_bavail >= disk.f_blocks / 50;
    }

    static bool is_as_before(FdRef file, const TreeEntry &entry)
    {
        struct stat facts {};
        return fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_ino == entry.inode &&
               file_time(facts.st_ctim) == entry.changed;
    }

    FdRef root_, copies_;
    const CopyOrder &order_;
    std::string unfinished_;                  // the name of the copy that is being made
    std::unordered_set<std::uint64_t> names_; // by inode
    std::uint64_t used_ = 0;
    bool is_full_ = false;
};

} // namespace

FileTime time_now()
{
    timespec now{};
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) throw_errno("reading the clock");
    return file_time(now);
}

const char *reason_of(Kept kept) noexcept
{
    constexpr const char *reasons[] = {"it is not a regular file",
                                       "",
                                       "tools make it again (node_modules and similar)",
                                       "it is larger than projects.undo.file",
                                       "projects.undo.size or the disk had no room",
                                       "it changed after the start",
                                       "you cannot read it",
                                       "the session ended before"};
    return reasons[static_cast<std::size_t>(kept)];
}

std::string copy_name(std::uint64_t device, const TreeEntry &entry)
{
    return std::to_string(device) + "-" + std::to_string(entry.inode) + "-" + std::to_string(entry.changed);
}

const TreeEntry *TreeLook::find(std::string_view path) const noexcept
{
    const auto found = std::lower_bound(entries.begin(), entries.end(), path,
                                        [](const TreeEntry &entry, std::string_view wanted) { return entry.path < wanted; });
    return found != entries.end() && found->path == path ? &*found : nullptr;
}

bool TreeLook::is_left_out(std::string_view path) const noexcept
{
    return std::any_of(left_out.begin(), left_out.end(), [&](const std::string &directory) {
        return directory.empty() || (path.starts_with(directory) && path.size() > directory.size() && path[directory.size()] == '/');
    });
}

UniqueFd open_root_of_tree(const std::string &path)
{
    UniqueFd root = open_resolved(FdRef(AT_FDCWD), path, O_RDONLY | O_DIRECTORY, defence_is_on("undo-beneath") ? RESOLVE_NO_SYMLINKS : 0);
    if (!root) throw_errno("opening " + escape_for_display(path));
    return root;
}

UniqueFd open_in_tree(FdRef root, const std::string &path, int flags) noexcept
{
    const std::uint64_t resolve =
        defence_is_on("undo-beneath") ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS : 0;
    const int quiet = (flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY;
    return open_resolved(root, path, flags | quiet | (defence_is_on("undo-beneath") ? O_NOFOLLOW : 0), resolve);
}

TreeLook walk_tree(FdRef root, const WalkOrder &order)
{
    return Walk(root, order).run();
}

bool copy_content(FdRef from, FdRef into, const IsCancelled &is_cancelled)
{
    if (ioctl(into.get(), FICLONE, from.get()) == 0) return true;
    struct stat facts {};
    if (fstat(from.get(), &facts) != 0 || ftruncate(into.get(), facts.st_size) != 0) return false;
    std::string buffer(std::min(copy_step, static_cast<std::size_t>(facts.st_size)), '\0');
    off_t at = 0;
    while (at < facts.st_size) {
        const off_t data = lseek(from.get(), at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) return true; // a hole up to the end
        if (data > at) at = data;
        const off_t hole = data < 0 ? facts.st_size : lseek(from.get(), at, SEEK_HOLE);
        for (const off_t end = hole > at ? hole : facts.st_size; at < end;) {
            if (is_cancelled()) return errno = ECANCELED, false; // somebody waits for the end of the session
            const auto wanted = std::min(buffer.size(), static_cast<std::size_t>(end - at));
            const ssize_t count = pread(from.get(), buffer.data(), wanted, at);
            if (count <= 0) return errno = count == 0 ? ESTALE : errno, false; // shorter than it was
            for (ssize_t done = 0; done < count;) {
                const ssize_t written = pwrite(into.get(), buffer.data() + done, static_cast<std::size_t>(count - done), at + done);
                if (written < 0) return false;
                done += written;
            }
            at += count;
        }
    }
    return true;
}

void copy_contents(FdRef root, FdRef copies, TreeLook &manifest, const CopyOrder &order)
{
    std::vector<TreeEntry *> wanted;
    for (auto &entry : manifest.entries)
        if (entry.kept == Kept::unreached && (order.alone == nullptr || order.alone->contains(entry.path))) wanted.push_back(&entry);
    const auto is_smaller = [](const TreeEntry *one, const TreeEntry *other) { return one->size < other->size; };
    const auto later = std::stable_partition(wanted.begin(), wanted.end(), [](const TreeEntry *entry) { return !comes_later(*entry); });
    std::stable_sort(wanted.begin(), later, is_smaller);
    std::stable_sort(later, wanted.end(), is_smaller);
    Copier copier(root, copies, order);
    for (auto *entry : wanted) {
        if (order.is_cancelled()) return;
        copier.take(*entry);
    }
}

} // namespace pi_agent
