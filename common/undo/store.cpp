// Keeps checkpoints in a directory of the user's: makes them, finds them, and removes the oldest.
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "common/undo/checkpoint.hpp"

#include <sys/file.h>

namespace pi_agent {

namespace {

constexpr std::size_t most_checkpoints = 10;
constexpr std::int64_t longest_seconds = 14L * 24 * 60 * 60;
constexpr std::size_t id_length = 32;
constexpr std::size_t time_length = 20;                     // digits, so that names sort by time
constexpr std::size_t manifest_limit = 512UL * 1024 * 1024; // bytes
constexpr const char *copies_name = "copies";
constexpr const char *unnamed = "-new-"; // the session's id is not known yet

std::string digits_of(FileTime time)
{
    const auto digits = std::to_string(time / 1000);
    return std::string(time_length - std::min(time_length, digits.size()), '0') + digits;
}

std::string id_of(const std::string &name)
{
    return name.size() == time_length + 1 + id_length && name.find(unnamed) == std::string::npos ? name.substr(time_length + 1) : "";
}

void write_file(FdRef directory, const std::string &name, std::string_view bytes)
{
    const std::string unfinished = name + ".new";
    const UniqueFd file = open_or_throw("writing a checkpoint", directory, unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    write_whole(file, bytes, "a checkpoint");
    if (name != "after" && fdatasync(file.get()) != 0) throw_errno("writing a checkpoint"); // a user waits for that one
    if (renameat(directory.get(), unfinished.c_str(), directory.get(), name.c_str()) != 0) throw_errno("writing a checkpoint");
}

std::vector<std::string> names_below(FdRef directory, const std::string &name)
{
    std::vector<std::string> names;
    DirectoryStream stream(open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    while (const dirent *entry = stream ? stream.next() : nullptr)
        names.emplace_back(entry->d_name);
    return names;
}

void remove_all(FdRef directory, const std::string &name)
{
    const UniqueFd gone = open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    unlinkat(gone.get(), "before", 0); // first: without it, what is half removed counts no more
    for (const auto &file : names_below(directory, name))
        unlinkat(gone.get(), file.c_str(), 0);
    unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR); // best_effort: the next prune tries again
}

} // namespace

// False for one of another version.
bool Checkpoint::read_head()
{
    const UniqueFd file = open_or_throw("reading a checkpoint", directory_, "head", O_RDONLY | O_NOFOLLOW);
    const std::string bytes = read_whole(file, record_limit, "a checkpoint");
    Decoder decoder(bytes);
    if (decoder.number() != CheckpointHead::type) return false;
    CheckpointHead::fields(decoder, head);
    return true;
}

TreeLook Checkpoint::before() const
{
    try {
        return read("before");
    } catch (const ProtocolError &problem) {
        throw Failure(ExitStatus::unavailable, "what was kept of the session " + id + " is damaged and cannot be taken back (" +
                                                   problem.what() + "); the disk may have lost it");
    }
}

std::optional<TreeLook> Checkpoint::after() const
{
    try {
        return has("after") ? std::optional(read("after")) : std::nullopt;
    } catch (const ProtocolError &) { // cut when the host went down
        return std::nullopt;
    }
}

UniqueFd Checkpoint::open_copy(const TreeEntry &entry) const
{
    if (entry.size == 0) return open_or_throw("opening an empty copy", "/dev/null", O_RDONLY);
    UniqueFd copy = open_or_throw("opening the copy of " + escape_for_display(entry.path), directory_,
                                  std::string("../") + copies_name + "/" + copy_name(head.device, entry), O_RDONLY | O_NOFOLLOW);
    // A host that went down may have lost what was written last.
    if (static_cast<std::uint64_t>(examine(copy, "opening a copy").st_size) != entry.size)
        throw Failure(ExitStatus::unavailable, "the copy of " + escape_for_display(entry.path) + " is not whole");
    return copy;
}

TreeLook Checkpoint::read(const char *name) const
{
    const UniqueFd file = open_or_throw("reading a checkpoint", directory_, name, O_RDONLY | O_NOFOLLOW);
    auto manifest = decode_fields<TreeLook>(read_whole(file, manifest_limit, "a checkpoint"));
    for (const auto &entry : manifest.entries)
        if (entry.path.empty() || entry.path.front() == '/' || has_odd_component(entry.path) || entry.kept > Kept::last)
            throw ProtocolError("a checkpoint is damaged");
    return manifest;
}

std::string users_undo_directory(Uid user)
{
    const auto account = find_account(user);
    if (!account) throw Failure(ExitStatus::configuration, "you are not in the user database of this host");
    return std::string(undo_path) + "/" + short_name(*account);
}

UndoStore UndoStore::open(const std::string &path)
{
    UniqueFd directory = open_or_throw("opening " + path, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const struct stat facts = examine(directory, "opening " + path);
    // Whoever else could write there could say what a later undo writes into the user's project.
    if (facts.st_uid != geteuid() || ((facts.st_mode & 0077U) != 0 && defence_is_on("undo-own-store")))
        throw Failure(ExitStatus::denied, path + " is not a directory that belongs to you alone");
    return UndoStore(std::move(directory));
}

Checkpoint UndoStore::begin(const CheckpointHead &head) const
{
    const UniqueFd copies = open_copies(); // until it is locked itself, so that nobody takes it for one that was left half made
    Checkpoint made;
    made.name_ = digits_of(head.start) + unnamed + random_hex(8);
    made.head = head;
    if (mkdirat(directory_.get(), made.name_.c_str(), 0700) != 0) throw_errno("making a checkpoint");
    made.directory_ = open_or_throw("making a checkpoint", directory_, made.name_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (flock(made.directory_.get(), LOCK_EX | LOCK_NB) != 0) throw_errno("making a checkpoint");
    write_file(made.directory_, "head", encode(head));
    return made;
}

void UndoStore::name(Checkpoint &checkpoint, const std::string &id) const
{
    const std::string name = checkpoint.name_.substr(0, time_length) + "-" + id;
    if (id.size() != id_length || renameat(directory_.get(), checkpoint.name_.c_str(), directory_.get(), name.c_str()) != 0)
        throw_errno("naming a checkpoint");
    checkpoint.name_ = name;
    checkpoint.id = id;
}

void UndoStore::write(const Checkpoint &checkpoint, const char *name, const TreeLook &manifest) const
{
    write_file(checkpoint.directory_, name, encode(manifest));
}

std::vector<std::string> UndoStore::names() const
{
    std::vector<std::string> names = names_below(directory_, ".");
    std::erase(names, copies_name);
    std::sort(names.begin(), names.end(), std::greater<>());
    return names;
}

// Shared: whoever keeps it open only keeps others from removing it.
Checkpoint UndoStore::open_checkpoint(const std::string &name) const
{
    Checkpoint found;
    found.name_ = name;
    found.id = id_of(name);
    found.directory_ = open_at(directory_, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    found.is_live = found.directory_ && flock(found.directory_.get(), LOCK_SH | LOCK_NB) != 0;
    return found;
}

std::vector<Checkpoint> UndoStore::list() const
{
    std::vector<Checkpoint> all;
    for (const auto &name : names()) {
        Checkpoint found = open_checkpoint(name);
        try {
            if (found.directory_ && !found.id.empty() && found.has("before") && found.read_head()) all.push_back(std::move(found));
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): it is being removed, or damaged, and the others are not
        }
    }
    return all;
}

UniqueFd UndoStore::open_copies() const
{
    if (mkdirat(directory_.get(), copies_name, 0700) != 0 && errno != EEXIST) throw_errno("making a place for copies");
    UniqueFd copies = open_or_throw("opening the copies", directory_, copies_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (flock(copies.get(), LOCK_SH) != 0) throw_errno("locking the copies");
    return copies;
}

// Empty while somebody makes a checkpoint, or prunes.
UniqueFd UndoStore::lock_copies() const
{
    UniqueFd copies = open_at(directory_, copies_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return copies && flock(copies.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(copies) : UniqueFd();
}

// False if it is open elsewhere.
bool UndoStore::remove(const Checkpoint &checkpoint) const
{
    if (flock(checkpoint.directory_.get(), LOCK_EX | LOCK_NB) != 0) return false;
    remove_all(directory_, checkpoint.name_);
    return true;
}

// Those that stay, the newest first; of none of them is the manifest read yet.
std::vector<Checkpoint> UndoStore::drop(FileTime now) const
{
    std::vector<Checkpoint> kept;
    std::size_t count = 0;
    for (const auto &name : names()) {
        Checkpoint found = open_checkpoint(name);
        if (!found.directory_) continue;
        bool is_whole = false;
        try {
            is_whole = found.has("before") && found.read_head() && !found.id.empty();
        } catch (const Failure &) { // damaged
            is_whole = false;
        }
        const auto made = to_number<std::int64_t>(name.substr(0, std::min(name.size(), time_length))).value_or(0) / 1'000'000;
        const bool is_young = count < most_checkpoints && now / 1'000'000'000 - made < longest_seconds;
        const bool stays = is_whole && (count == 0 || is_young);
        if (is_whole) ++count;
        if (stays || !remove(found)) kept.push_back(std::move(found));
    }
    return kept;
}

void UndoStore::drop_old(FileTime now) const
{
    if (const UniqueFd copies = lock_copies()) drop(now);
}

void UndoStore::prune(std::uint64_t size, FileTime now) const
{
    const UniqueFd copies = lock_copies();
    if (!copies) return;
    const auto kept = drop(now);
    std::unordered_map<std::string, std::uint64_t> unneeded; // copies, and their bytes
    for (const auto &file : names_below(directory_, copies_name))
        if (struct stat facts{}; fstatat(copies.get(), file.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0)
            unneeded[file] = static_cast<std::uint64_t>(facts.st_blocks) * 512;
    std::uint64_t used = 0;
    bool is_newest = true;
    for (const auto &one : kept) {
        std::unordered_map<std::string, std::uint64_t> needed;
        std::uint64_t added = used;
        bool is_whole = one.has("before");
        try {
            if (is_whole)
                for (const auto &entry : one.before().entries)
                    if (entry.kept == Kept::copied) needed.insert(unneeded.extract(copy_name(one.head.device, entry)));
        } catch (const Failure &) { // damaged
            is_whole = false;
        }
        for (const auto &copy : needed)
            added += copy.second;
        if ((is_whole && (is_newest || added <= size)) || !remove(one)) {
            used = added;
            is_newest = is_newest && (!is_whole || one.id.empty());
        } else {
            unneeded.merge(needed);
        }
    }
    for (const auto &[name, bytes] : unneeded)
        unlinkat(copies.get(), name.c_str(), 0);
}

TreeLook take_checkpoint(const UndoStore &store, const Checkpoint &made, FdRef root, TreeLook look, CopyOrder copy)
{
    copy.start = made.head.start;
    copy.device = made.head.device;
    const UniqueFd copies = store.open_copies();
    copy_contents(root, copies, look, copy);
    store.write(made, "before", look);
    return look;
}

} // namespace pi_agent
