// The log of the config sync, looking at the agent's home, and what of class `once` the agent has changed.
#include "runner/as_agent/writer.hpp"

#include "common/base/files.hpp"
#include "runner/as_agent/home.hpp"

namespace pi_agent {

namespace {

enum class RecordKind : std::uint64_t { header = 1, intent = 2, entry = 3, forgotten = 4, document = 5 };

constexpr std::uint64_t format_version = 1;
constexpr std::size_t log_limit = std::size_t{192} << 20U;
constexpr std::size_t flush_bytes = 256UL * 1024;
constexpr std::size_t usual_record_bytes = 160;
constexpr std::size_t long_log_bytes = 1024UL * 1024;
// Kernels before 6.13 stamp files with a clock that ticks every 1 to 10 ms; twice that, and more for file systems that round.
constexpr std::int64_t settling_nanoseconds = 50'000'000;

// Numbers as versions without symlinks wrote them, and as they read them: they take anything but 0 for a directory.
enum class PathKind : std::uint64_t { file = 0, directory = 1, link = 2 };

PathKind kind_of(const ManifestEntry &entry) noexcept
{
    return entry.is_directory ? PathKind::directory : entry.is_link ? PathKind::link : PathKind::file;
}

Encoder begin(RecordKind kind)
{
    Encoder encoder;
    encoder.number(static_cast<std::uint64_t>(kind));
    return encoder;
}

std::string entry_record(const std::string &path, const ManifestEntry &entry)
{
    Encoder encoder = begin(RecordKind::entry);
    encoder(path, kind_of(entry), entry.host, entry.inside, entry.recorded);
    return encoder.bytes();
}

std::string document_record(const std::string &name, const DocumentBase &base)
{
    return begin(RecordKind::document).text(name).text(base.host).text(base.chosen).text(base.written).bytes();
}

std::string header_record()
{
    return begin(RecordKind::header).number(format_version).bytes();
}

std::string framed(const std::string &record)
{
    return Encoder().text(record).bytes();
}

// The manifest knows a file by its time of change.
void keep_as_synced(Manifest &manifest, const std::string &path, const struct stat &before, const struct stat &now)
{
    const ManifestEntry *entry = manifest.find(path);
    if (entry == nullptr || entry->inside != inside_facts(before) || entry->inside == inside_facts(now)) return;
    ManifestEntry kept = *entry;
    kept.inside = inside_facts(now);
    kept.recorded = wall_clock_nanoseconds();
    manifest.set(path, kept);
    manifest.flush(); // a walk that is ended here has not made it the agent's
}

} // namespace

std::int64_t wall_clock_nanoseconds() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds_of(now);
}

bool ManifestEntry::is_settled() const noexcept
{
    return std::max(host.changed, inside.changed) + settling_nanoseconds < recorded;
}

Manifest::Manifest(FdRef log, FdRef spare) : log_(log), spare_(spare)
{
    // A log that is too long is read as far as the limit: refusing it would refuse every start from now on.
    const struct stat facts = examine(log_, "examining the manifest of the config sync");
    if (facts.st_size > static_cast<off_t>(log_limit) && ftruncate(log_.get(), log_limit) != 0)
        throw_errno("cutting the manifest of the config sync");
    const std::string text = read_whole(log_, log_limit, "the manifest of the config sync");
    std::string_view rest = text;
    entries_.reserve(text.size() / usual_record_bytes);
    bool is_first = true;
    while (rest.size() > 8) {
        Decoder frame(rest.substr(0, 8));
        const std::uint64_t size = frame.number();
        if (size == 0 || size > rest.size() - 8) break;
        const std::string_view record = rest.substr(8, size);
        try {
            if (is_first && record != header_record()) break;
            if (!is_first && !take(record)) break;
        } catch (const ProtocolError &) { // half a record
            break;
        }
        is_first = false;
        rest.remove_prefix(8 + size);
    }
    log_bytes_ = text.size() - rest.size();
    if (!rest.empty() && ftruncate(log_.get(), static_cast<off_t>(log_bytes_)) != 0) throw_errno("cutting the manifest of the config sync");
    if (lseek(log_.get(), 0, SEEK_END) < 0) throw_errno("writing the manifest of the config sync");
    if (log_bytes_ == 0) append(header_record());
}

// False for a record that this version does not know.
bool Manifest::take(std::string_view record)
{
    Decoder decoder(record);
    const auto kind = static_cast<RecordKind>(decoder.number());
    std::string name = decoder.text();
    if (kind == RecordKind::intent || kind == RecordKind::entry) {
        const bool is_whole = kind == RecordKind::entry;
        ManifestEntry entry;
        const auto path_kind = static_cast<PathKind>(decoder.number());
        entry.is_link = path_kind == PathKind::link;
        entry.is_directory = path_kind != PathKind::file && !entry.is_link;
        if (is_whole) decoder(entry.host, entry.inside, entry.recorded);
        decoder.end();
        if (!insert(name, entry) && is_whole) stale_bytes_ += record.size();
    } else if (kind == RecordKind::forgotten) {
        decoder.end();
        erase(name);
        stale_bytes_ += 2 * record.size();
    } else if (kind == RecordKind::document) {
        DocumentBase base{decoder.text(), decoder.text(), decoder.text()};
        decoder.end();
        const auto [present, is_new] = documents_.insert_or_assign(std::move(name), std::move(base));
        if (!is_new) stale_bytes_ += record.size();
    } else {
        return false;
    }
    return true;
}

ManifestEntry *Manifest::find(const std::string &path)
{
    if (next_ < order_.size() && order_[next_]->first == path) return &order_[next_++]->second;
    const auto found = entries_.find(path);
    if (found == entries_.end()) return nullptr;
    // The next lookup begins at the following entry: whole directories move, not single files.
    if (next_ + 1 < order_.size() && order_[next_ + 1] == &*found) next_ += 2;
    return &found->second;
}

bool Manifest::insert(const std::string &path, const ManifestEntry &entry)
{
    const auto [present, is_new] = entries_.insert_or_assign(path, entry);
    if (is_new) order_.push_back(&*present);
    return is_new;
}

void Manifest::erase(const std::string &path)
{
    if (entries_.erase(path) == 0) return;
    order_.clear();
    next_ = 0;
}

const DocumentBase *Manifest::document(const std::string &name) const
{
    const auto found = documents_.find(name);
    return found == documents_.end() ? nullptr : &found->second;
}

void Manifest::intend(const std::string &path, bool is_directory, bool is_link)
{
    const ManifestEntry entry{is_directory, {}, {}, 0, true, is_link};
    insert(path, entry);
    append(begin(RecordKind::intent).text(path).number(static_cast<std::uint64_t>(kind_of(entry))).bytes());
}

void Manifest::set(const std::string &path, ManifestEntry entry)
{
    const std::string record = entry_record(path, entry);
    if (const auto known = entries_.find(path); known != entries_.end() && known->second.recorded != 0) stale_bytes_ += record.size();
    entry.was_seen = true;
    insert(path, entry);
    append(record);
}

void Manifest::forget(const std::string &path)
{
    erase(path);
    const std::string record = begin(RecordKind::forgotten).text(path).bytes();
    stale_bytes_ += 2 * record.size();
    append(record);
}

void Manifest::set_document(const std::string &name, const DocumentBase &base)
{
    const std::string record = document_record(name, base);
    stale_bytes_ += record.size();
    documents_[name] = base;
    append(record);
}

void Manifest::append(const std::string &record)
{
    pending_ += framed(record);
    if (pending_.size() > flush_bytes) flush();
}

void Manifest::flush()
{
    write_whole(log_, pending_, "the manifest of the config sync");
    log_bytes_ += pending_.size();
    pending_.clear();
}

bool Manifest::rewrite_if_long()
{
    flush();
    if (log_bytes_ < long_log_bytes || stale_bytes_ < log_bytes_ / 2) return false;
    if (ftruncate(spare_.get(), 0) != 0 || lseek(spare_.get(), 0, SEEK_SET) < 0) throw_errno("rewriting the manifest of the config sync");
    std::string text = framed(header_record());
    const auto add = [&text](const Entries::value_type &item) { text += framed(entry_record(item.first, item.second)); };
    if (order_.size() == entries_.size())
        std::for_each(order_.begin(), order_.end(), [&](const auto *item) { add(*item); });
    else
        std::for_each(entries_.begin(), entries_.end(), add);
    for (const auto &[name, base] : documents_)
        text += framed(document_record(name, base));
    write_whole(spare_, text, "the manifest of the config sync");
    if (fdatasync(spare_.get()) != 0) throw_errno("writing the manifest of the config sync to disk");
    log_ = spare_;
    log_bytes_ = text.size();
    stale_bytes_ = 0;
    return true;
}

InsideFacts inside_facts(const struct stat &facts) noexcept
{
    return InsideFacts{facts.st_ino, static_cast<std::uint64_t>(facts.st_size), nanoseconds_of(facts.st_ctim)};
}

FdRef LastDirectory::open(const std::string &path, UniqueFd (*opened)(FdRef top, const std::string &path))
{
    if (!known_ || path != path_) {
        UniqueFd fd = opened(top_, path);
        problem_ = errno;
        path_ = path;
        fd_ = std::move(fd);
        known_ = true;
    }
    errno = problem_;
    return fd_;
}

FdRef LastDirectory::look(const std::string &path)
{
    return open(path, [](FdRef top, const std::string &name) { return find_beneath(top, name, O_PATH | O_DIRECTORY); });
}

FdRef LastDirectory::make(const std::string &path)
{
    if (!fd_) known_ = false;
    return open(path, ensure_directory_beneath);
}

InsideState LastDirectory::state(const std::string &path, const ManifestEntry *known)
{
    const auto [directory_path, name] = split_last(path);
    const FdRef directory = look(directory_path);
    struct stat facts {};
    // The agent closed this directory, and there may be anything in it.
    if (directory.get() < 0 || fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == EACCES ? InsideState::other : InsideState::absent;
    if (known == nullptr || known->inside.inode == 0 || (facts.st_mode & S_IFMT) != (known->is_link ? S_IFLNK : S_IFREG))
        return InsideState::other;
    if (!defence_is_on("change-time")) { // as rsync looks: but the agent can set both back
        return known->inside.size == static_cast<std::uint64_t>(facts.st_size) && known->host.modified == nanoseconds_of(facts.st_mtim)
                   ? InsideState::as_synced
                   : InsideState::other;
    }
    return known->inside == inside_facts(facts) ? InsideState::as_synced : InsideState::other;
}

void join_home(const AsUser &agent, FdRef home, std::pair<FdRef, FdRef> logs, std::uint32_t project, FdRef channel)
{
    Manifest manifest(logs.first, logs.second);
    join_tree(agent, home, project, channel, [&](const std::string &path, const struct stat &before, const struct stat &now) {
        keep_as_synced(manifest, path, before, now);
    });
}

// Finds out what of class `once` the agent has changed.

std::string_view path_in_config(std::string_view path) noexcept
{
    const std::string_view top = agent_directory;
    return is_within(path, top) && path.size() > top.size() + 1 ? path.substr(top.size() + 1) : std::string_view();
}

std::string OnceTrees::whole_of(const std::string &path) const
{
    return join_path(agent_directory, classes_.whole_of(path_in_config(path)));
}

void OnceTrees::take(const ListedEntry &entry, std::uint64_t number, const ManifestEntry *known)
{
    const bool is_directory = entry.kind == EntryKind::directory;
    const bool same_kind = known != nullptr && known->is_directory == is_directory;
    const bool is_whole = same_kind && (is_directory || known->recorded != 0); // otherwise a killed sync left it: not the agent's
    InsideState inside = InsideState::absent;
    if (is_directory && inside_.look(entry.path).get() >= 0)
        inside = InsideState::as_synced;
    else if (!is_directory && (known == nullptr || is_whole))
        inside = inside_.state(entry.path, known);
    const bool is_as_known = is_whole && known->host == entry.facts;
    entries_.push_back({entry, number, known != nullptr, is_as_known ? HostState::unchanged : HostState::changed, inside});
    if (!is_directory && (known == nullptr ? inside != InsideState::absent : is_whole && inside != InsideState::as_synced))
        changed_.insert(whole_of(entry.path));
}

void OnceTrees::judge(Manifest &manifest, const std::vector<std::string> &unreadable)
{
    for (const auto &[path, entry] : manifest.entries()) {
        const bool is_once = classes_.of(path_in_config(path)) == FileClass::once && !path_in_config(path).empty();
        if (!is_once || entry.was_seen || entry.is_directory || entry.recorded == 0) continue;
        if (inside_.state(path, &entry) != InsideState::as_synced) changed_.insert(whole_of(path));
    }
    // A directory that the agent removed completely counts as one that it never had.
    for (const auto &one : entries_)
        if (one.entry.kind == EntryKind::directory && one.inside == InsideState::absent && whole_of(one.entry.path) == one.entry.path)
            changed_.erase(one.entry.path);
    for (const auto &path : unreadable)
        if (!path_in_config(path).empty() && classes_.of(path_in_config(path)) == FileClass::once && whole_of(path) == path)
            changed_.insert(path);
}

InsideState OnceTrees::state_of(const std::string &path, InsideState itself) const
{
    return changed_.contains(whole_of(path)) ? InsideState::other : itself;
}

std::vector<std::string> OnceTrees::left_behind() const
{
    std::set<std::string> found;
    for (const auto &one : entries_) {
        const std::string whole = whole_of(one.entry.path);
        if (one.entry.kind == EntryKind::file && whole != one.entry.path && one.host == HostState::changed && changed_.contains(whole))
            found.insert(whole);
    }
    return {found.begin(), found.end()};
}

} // namespace pi_agent
