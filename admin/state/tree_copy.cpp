// Copies and compares trees by descriptors. Agents wrote them, so nothing in them is believed: neither names, nor links, nor depth.
#include "admin/state/state.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <sys/sendfile.h>
#include <sys/xattr.h>

namespace pi_agent {

namespace {

constexpr int deepest_home = 256;                           // three descriptors each; a path of usual length has fewer names
constexpr std::size_t names_limit = std::size_t{64} << 10U; // of attributes, the kernel's own
constexpr std::size_t piece_size = std::size_t{1} << 20U;

[[noreturn]] void refuse_in_home(const std::string &path, const std::string &problem)
{
    throw Failure(ExitStatus::configuration, escape_for_display(path) + " " + problem);
}

// Times, in the order of futimens(2).
std::array<timespec, 2> times_of(const struct stat &facts)
{
    return {facts.st_atim, facts.st_mtim};
}

// What others than root give meaning to. Labels belong to the place, and capabilities would be root's gift.
bool is_copied_attribute(const std::string &name)
{
    return name.starts_with("user.") || name.starts_with("system.posix_acl_");
}

std::vector<std::string> attribute_names(FdRef file, const std::string &path)
{
    std::vector<char> buffer(names_limit);
    const ssize_t size = ::flistxattr(file.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == ENOTSUP) return {};
    if (size < 0) throw_errno("listing the attributes of " + escape_for_display(path));
    std::vector<std::string> names;
    for (const auto name : split({buffer.data(), static_cast<std::size_t>(size)}, '\0'))
        if (is_copied_attribute(std::string(name))) names.emplace_back(name);
    return names;
}

void copy_attributes(FdRef from, FdRef to, const std::string &path)
{
    for (const auto &name : attribute_names(from, path)) {
        std::vector<char> value(names_limit);
        const ssize_t size = ::fgetxattr(from.get(), name.c_str(), value.data(), value.size());
        if (size < 0) throw_errno("reading an attribute of " + escape_for_display(path));
        if (::fsetxattr(to.get(), name.c_str(), value.data(), static_cast<std::size_t>(size), 0) != 0)
            throw_errno("writing an attribute or access list of " + escape_for_display(path) + " at the new place");
    }
}

// Calls `step` with each part of the file that is not a hole.
void for_each_part(FdRef file, off_t size, const std::string &path, const std::function<void(off_t begin, off_t end)> &step)
{
    for (off_t at = 0; at < size;) {
        const off_t begin = ::lseek(file.get(), at, SEEK_DATA);
        if (begin < 0 && errno == ENXIO) return; // nothing but a hole is left
        if (begin < 0) throw_errno("looking for holes in " + escape_for_display(path));
        const off_t end = ::lseek(file.get(), begin, SEEK_HOLE);
        if (end < 0) throw_errno("looking for holes in " + escape_for_display(path));
        step(begin, end);
        at = end;
    }
}

void copy_parts(FdRef from, FdRef to, off_t size, const std::string &path)
{
    for_each_part(from, size, path, [&](off_t begin, off_t end) {
        if (::lseek(to.get(), begin, SEEK_SET) < 0) throw_errno("writing " + escape_for_display(path) + " at the new place");
        while (begin < end) {
            const ssize_t count = ::sendfile(to.get(), from.get(), &begin, static_cast<std::size_t>(end - begin));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) throw_errno("writing " + escape_for_display(path) + " at the new place");
            if (count == 0) refuse_in_home(path, "became shorter while it was copied: something still writes there");
        }
    });
    if (::ftruncate(to.get(), size) != 0) throw_errno("writing " + escape_for_display(path) + " at the new place");
}

// The same entry that was examined, opened to read. A name may lead to another one by now.
UniqueFd open_same(FdRef parent, const std::string &name, const struct stat &expected, int flags, const std::string &path)
{
    auto entry = open_or_throw("opening " + escape_for_display(path), parent, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!is_same_file(examine(entry, "examining " + escape_for_display(path)), expected))
        refuse_in_home(path, "changed while it was copied: something still writes there");
    return entry;
}

class HomesCopy {
public:
    HomesCopy(FdRef from, FdRef to) : device_(examine(from, "examining the agents' homes").st_dev), top_(to) {}

    // `below` is the path from the top.
    void copy_directory(FdRef from, FdRef to, const std::string &path, const std::string &below, int depth)
    {
        if (depth > deepest_home) refuse_in_home(path, "nests too deep; remove it, or empty that home (pi-agentctl state reset)");
        for (const auto &name : names_in(from)) {
            const std::string entry_path = path + "/" + name;
            const auto entry = open_or_throw("opening " + escape_for_display(entry_path), from, name, O_PATH | O_NOFOLLOW);
            const struct stat facts = examine(entry, "examining " + escape_for_display(entry_path));
            if (facts.st_dev != device_ && defence_is_on("move-one-file-system"))
                refuse_in_home(entry_path, "is a file system of its own; unmount it first, and mount it at its new place afterwards");
            const Names names{from, to, name, entry_path, join_path(below, name)};
            if (S_ISDIR(facts.st_mode))
                copy_below(names, facts, depth);
            else if (!link_to_copy(names, facts))
                copy_entry(names, entry, facts);
        }
    }

private:
    struct Names {
        FdRef from, to;
        const std::string &name;
        const std::string &path;
        std::string below;
    };

    void copy_below(const Names &names, const struct stat &facts, int depth)
    {
        const auto inner = open_same(names.from, names.name, facts, O_RDONLY | O_DIRECTORY, names.path);
        if (::mkdirat(names.to.get(), names.name.c_str(), 0700) != 0) throw_errno("creating the copy of " + escape_for_display(names.path));
        const auto made = open_or_throw("opening the copy of " + escape_for_display(names.path), names.to, names.name,
                                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        copy_directory(inner, made, names.path, names.below, depth + 1);
        give(inner, made, facts, names.path);
    }

    // True if another name of the file is copied already.
    bool link_to_copy(const Names &names, const struct stat &facts)
    {
        if (facts.st_nlink < 2) return false;
        const auto [first, is_new] = links_.emplace(std::pair(facts.st_dev, facts.st_ino), names.below);
        if (is_new) return false;
        const int failed = ::linkat(top_.get(), first->second.c_str(), names.to.get(), names.name.c_str(), 0);
        if (failed != 0 && errno == ENAMETOOLONG)
            refuse_in_home(names.path,
                           "is another name of a file whose path is too long; remove it, or empty that home (pi-agentctl state reset)");
        if (failed != 0) throw_errno("creating the copy of " + escape_for_display(names.path));
        return true;
    }

    void copy_entry(const Names &names, FdRef entry, const struct stat &facts)
    {
        if (S_ISREG(facts.st_mode)) {
            const auto file = open_same(names.from, names.name, facts, O_RDONLY, names.path);
            const auto made = open_or_throw("creating the copy of " + escape_for_display(names.path), names.to, names.name,
                                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
            copy_parts(file, made, facts.st_size, names.path);
            return give(file, made, facts, names.path);
        }
        const int failed = S_ISLNK(facts.st_mode) ? ::symlinkat(read_link(entry, "").c_str(), names.to.get(), names.name.c_str())
                           : S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode)
                               ? ::mknodat(names.to.get(), names.name.c_str(), facts.st_mode, 0)
                               : (refuse_in_home(names.path, "is a device, which no agent can have made; look at it, and remove it"), -1);
        const auto times = times_of(facts);
        if (failed != 0 || ::fchownat(names.to.get(), names.name.c_str(), facts.st_uid, facts.st_gid, AT_SYMLINK_NOFOLLOW) != 0 ||
            (!S_ISLNK(facts.st_mode) && ::fchmodat(names.to.get(), names.name.c_str(), facts.st_mode & 07777U, 0) != 0) ||
            ::utimensat(names.to.get(), names.name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0)
            throw_errno("creating the copy of " + escape_for_display(names.path));
    }

    // The owner before the mode, because a change of owner takes bits away.
    static void give(FdRef from, FdRef to, const struct stat &facts, const std::string &path)
    {
        const auto times = times_of(facts);
        if (::fchown(to.get(), facts.st_uid, facts.st_gid) != 0 || ::fchmod(to.get(), facts.st_mode & 07777U) != 0)
            throw_errno("setting owner and mode of the copy of " + escape_for_display(path));
        copy_attributes(from, to, path);
        if (::futimens(to.get(), times.data()) != 0) throw_errno("setting the times of the copy of " + escape_for_display(path));
    }

    dev_t device_;
    FdRef top_;
    std::map<std::pair<dev_t, ino_t>, std::string> links_; // the copy of a file with several names
};

bool have_same_parts(FdRef from, FdRef to, off_t size, const std::string &path)
{
    bool are_same = true;
    std::vector<char> one(piece_size);
    std::vector<char> other(piece_size);
    for_each_part(from, size, path, [&](off_t begin, off_t end) {
        while (are_same && begin < end) {
            const auto length = std::min(piece_size, static_cast<std::size_t>(end - begin));
            const ssize_t count = ::pread(from.get(), one.data(), length, begin);
            if (count < 0) throw_errno("reading " + escape_for_display(path));
            are_same = count > 0 && ::pread(to.get(), other.data(), static_cast<std::size_t>(count), begin) == count &&
                       std::equal(one.begin(), one.begin() + count, other.begin());
            begin += count;
        }
    });
    return are_same;
}

bool are_same_facts(const struct stat &one, const struct stat &other)
{
    const bool has_size = S_ISREG(one.st_mode) || S_ISLNK(one.st_mode);
    return one.st_mode == other.st_mode && one.st_uid == other.st_uid && one.st_gid == other.st_gid &&
           (!has_size || one.st_size == other.st_size) && one.st_mtim.tv_sec == other.st_mtim.tv_sec;
}

std::vector<std::string> sorted_names(FdRef directory)
{
    auto names = names_in(directory);
    std::sort(names.begin(), names.end());
    return names;
}

} // namespace

void copy_tree(const AsRoot & /*root*/, FdRef from, FdRef to, const std::string &path)
{
    HomesCopy(from, to).copy_directory(from, to, path, "", 0);
}

void require_same_tree(FdRef from, FdRef to, const std::string &path)
{
    const auto differs = [](const std::string &entry) { refuse_in_home(entry, "is not the same at the new place; something changed it"); };
    const auto names = sorted_names(from);
    if (names != sorted_names(to)) differs(path);
    for (const auto &name : names) {
        const std::string entry_path = path + "/" + name;
        const std::string shown = escape_for_display(entry_path);
        auto one = open_or_throw("opening " + shown, from, name, O_PATH | O_NOFOLLOW);
        auto other = open_or_throw("opening the copy of " + shown, to, name, O_PATH | O_NOFOLLOW);
        const struct stat facts = examine(one, "examining " + shown);
        const struct stat copied = examine(other, "examining the copy of " + shown);
        if (!are_same_facts(facts, copied)) differs(entry_path);
        if (S_ISDIR(facts.st_mode)) {
            one.reset(); // a tree as deep as the copy allows must not take more descriptors than there are
            other.reset();
            require_same_tree(open_same(from, name, facts, O_RDONLY | O_DIRECTORY, entry_path),
                              open_same(to, name, copied, O_RDONLY | O_DIRECTORY, entry_path), entry_path);
        } else if (S_ISLNK(facts.st_mode)) {
            if (read_link(one, "") != read_link(other, "")) differs(entry_path);
        } else if (S_ISREG(facts.st_mode)) {
            const auto file = open_same(from, name, facts, O_RDONLY, entry_path);
            if (!have_same_parts(file, open_same(to, name, copied, O_RDONLY, entry_path), facts.st_size, entry_path)) differs(entry_path);
        }
    }
}

} // namespace pi_agent
