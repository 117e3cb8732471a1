// The reading half of the config sync.
#include "runner/reader.hpp"

#include "common/defence.hpp"
#include "common/directory_stream.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"
#include "common/fault_point.hpp"
#include "runner/child.hpp"
#include "runner/host_file.hpp"
#include "runner/patience.hpp"
#include "runner/sync_messages.hpp"

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr std::size_t listing_depth_limit = 128;
constexpr std::size_t entry_limit = 200'000;
constexpr std::size_t notice_limit = 20;
constexpr std::uint64_t file_limit = std::uint64_t{256} << 20U;
constexpr std::uint64_t total_limit = std::uint64_t{2} << 30U;
constexpr int lock_patience_milliseconds = 1000;

// A writer that has ended told the runner why, and the runner ends us: a word of ours about the closed channel would only hide that.
[[noreturn]] void wait_for_the_end()
{
    for (;;)
        pause();
}

void send_to_writer(FdRef transfer, const SyncMessage &message, const std::vector<int> &fds = {})
{
    try {
        send_packet(transfer, encode(message), fds, in_seconds(sync_patience_seconds));
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != EPIPE && failure.error_number() != ECONNRESET) throw;
        wait_for_the_end();
    }
}

struct DirectoryId {
    dev_t device;
    ino_t inode;
};

// A file of the listing, to be opened when the writer wants it.
struct ListedFile {
    std::size_t source;
    std::string path; // relative to the source
};

// Lists the sources, and opens what is asked for by number.
class Reading {
public:
    Reading(const ReadingPlan &plan, FdRef transfer, FdRef channel) : plan_(plan), transfer_(transfer), channel_(channel) {}

    void open_sources()
    {
        for (const auto &source : plan_.sources)
            tops_.push_back(
                open_source_directory(source.directory, source.is_config ? "your config directory" : "your directory of skills"));
    }

    void send_documents()
    {
        send_progress(channel_, "reading " + escape_for_display(plan_.sources.front().directory));
        for (std::size_t index = 0; index < tops_.size(); ++index) {
            if (!plan_.sources[index].is_config) continue;
            for (const auto &name : plan_.documents)
                send_document(tops_[index], name, plan_.sources[index].directory + "/" + name);
        }
    }

    void list()
    {
        for (source_ = 0; source_ < tops_.size(); ++source_) {
            if (!tops_[source_]) continue;
            struct stat facts {};
            if (fstat(tops_[source_].get(), &facts) != 0) throw_errno("examining " + shown(""));
            UniqueFd top = UniqueFd::adopt(openat(tops_[source_].get(), ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
            if (!top) throw_errno("opening " + shown(""));
            enter(std::move(top), facts, "");
        }
        flush();
        send_to_writer(transfer_, SyncMessage{SyncStep::end_of_listing, {}, {}, {}, {}});
    }

    void serve()
    {
        for (;;) {
            const std::optional<Packet> packet = receive_packet(transfer_, in_seconds(sync_patience_seconds));
            if (!packet) wait_for_the_end();
            const std::vector<std::uint64_t> numbers = decode_wanted(packet->bytes);
            if (numbers.empty()) break;
            for (std::size_t start = 0; start < numbers.size(); start += packet_fd_limit)
                send_contents({numbers.begin() + static_cast<std::ptrdiff_t>(start),
                               numbers.begin() + static_cast<std::ptrdiff_t>(std::min(start + packet_fd_limit, numbers.size()))});
        }
        if (skipped_ > notice_limit) send_answer(channel_, "and " + std::to_string(skipped_ - notice_limit) + " more");
    }

private:
    [[nodiscard]] const ConfigSource &source() const { return plan_.sources[source_]; }
    [[nodiscard]] std::string shown(const std::string &path) const
    {
        return escape_for_display(path.empty() ? source().directory : source().directory + "/" + path);
    }

    void send_document(FdRef directory, const std::string &name, const std::string &place)
    {
        UniqueFd file;
        if (directory.get() >= 0) {
            wait_for_lock(directory, name, lock_patience_milliseconds);
            file = open_document(directory, name, place);
        }
        SyncMessage message{SyncStep::document, name, place, {}, {}};
        send_to_writer(transfer_, message, file ? std::vector<int>{file.get()} : std::vector<int>{});
    }

    void enter(UniqueFd fd, const struct stat &facts, const std::string &path)
    {
        const bool loop = std::any_of(above_.begin(), above_.end(),
                                      [&](const DirectoryId &d) { return d.device == facts.st_dev && d.inode == facts.st_ino; });
        if (loop) return skip(path, "a link back to a directory above it");
        if (above_.size() >= listing_depth_limit) return skip(path, "nested too deep");
        if (!path.empty() && is_listed(path)) add(EntryKind::directory, path, {});
        above_.push_back(DirectoryId{facts.st_dev, facts.st_ino});
        DirectoryStream stream(std::move(fd));
        if (!stream) throw_errno("reading " + shown(path));
        while (const dirent *entry = stream.next()) {
            const std::string name = entry->d_name;
            visit(stream.fd(), facts.st_dev, name, path.empty() ? name : path + "/" + name);
        }
        if (errno != 0) skip(path, SystemFailure(errno, "reading").what());
        above_.pop_back();
    }

    [[nodiscard]] bool is_document(const std::string &path) const
    {
        return source().is_config && std::find(plan_.documents.begin(), plan_.documents.end(), path) != plan_.documents.end();
    }

    [[nodiscard]] bool is_listed(const std::string &path) const { return !source().is_config || is_copied(plan_.classes.of(path)); }

    void visit(FdRef parent, dev_t parent_device, const std::string &name, const std::string &path)
    {
        if (is_document(path)) return; // whatever has become of it since it was sent
        const bool listed = is_listed(path);
        if (!listed && !plan_.classes.copies_below(path)) return;
        if (++entries_ > entry_limit)
            throw Failure(ExitStatus::configuration,
                          shown("") + " holds more than " + std::to_string(entry_limit) + " entries; is it really the config directory?");
        if (source().inside.size() + 1 + path.size() > 4096) return skip(path, "its path is longer than 4096 bytes", false);
        if (entries_ % 256 == 0) send_progress(channel_, "looking at " + shown("") + " (" + std::to_string(entries_) + " entries)");

        // Cheap for what lies in the directory itself; a link, or another file system, is looked at more closely.
        struct stat facts {};
        if (fstatat(parent.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
            return skip(path, SystemFailure(errno, "examining").what());
        if (S_ISLNK(facts.st_mode) || facts.st_dev != parent_device) {
            const UniqueFd place = UniqueFd::adopt(openat(parent.get(), name.c_str(), O_PATH | O_CLOEXEC));
            if (!place) return skip(path, errno == ELOOP ? "a loop of links" : SystemFailure(errno, "opening").what());
            if (fstat(place.get(), &facts) != 0) return skip(path, SystemFailure(errno, "examining").what());
            if (is_kernels(place)) return skip(path, "a file of the kernel's");
        }
        if (S_ISDIR(facts.st_mode)) {
            UniqueFd fd = UniqueFd::adopt(openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
            if (!fd) return skip(path, SystemFailure(errno, "opening").what());
            if (fstat(fd.get(), &facts) != 0) return skip(path, SystemFailure(errno, "examining").what());
            return enter(std::move(fd), facts, path);
        }
        if (!listed) return;
        if (!S_ISREG(facts.st_mode)) return skip(path, "neither a file nor a directory", false);
        list_file(path, facts_of(facts));
    }

    void list_file(const std::string &path, const HostFacts &facts)
    {
        if (facts.size > file_limit && defence_is_on("file-limit")) return skip(path, "larger than 256 MiB");
        if ((total_ += facts.size) > total_limit)
            throw Failure(ExitStatus::configuration, shown("") + " holds more than 2 GiB; is it really the config directory?");
        files_.push_back(ListedFile{source_, path});
        add(EntryKind::file, path, facts);
    }

    void add(EntryKind kind, const std::string &path, const HostFacts &facts)
    {
        std::string inside = source().inside;
        if (!path.empty()) inside += "/" + path;
        pending_ += inside.size() + 64;
        listing_.push_back(ListedEntry{kind, std::move(inside), facts});
        if (pending_ > listing_bytes) flush();
    }

    void flush()
    {
        if (listing_.empty()) return;
        send_to_writer(transfer_, SyncMessage{SyncStep::listing, {}, {}, std::move(listing_), {}});
        listing_.clear();
        pending_ = 0;
    }

    // `keep`: nothing is known of what is there, so that what was copied before stays.
    void skip(const std::string &path, const std::string &reason, bool keep = true)
    {
        name_skipped(path, reason);
        if (keep) add(EntryKind::unreadable, path, {});
    }

    void name_skipped(const std::string &path, const std::string &reason)
    {
        if (++skipped_ <= notice_limit) send_answer(channel_, "config: skipped " + shown(path) + ": " + reason);
    }

    void send_contents(const std::vector<std::uint64_t> &numbers)
    {
        SyncMessage message{SyncStep::contents, {}, {}, {}, {}};
        std::vector<UniqueFd> fds;
        for (const std::uint64_t number : numbers) {
            if (number >= files_.size()) throw ProtocolError("the writer of the config wants what was not listed");
            const ListedFile &file = files_[number];
            source_ = file.source;
            HostFile opened = open_host_file(tops_[file.source], file.path);
            if (opened.fd && opened.facts.size > file_limit && defence_is_on("file-limit")) opened = {{}, {}, "larger than 256 MiB"};
            if (!opened.fd) name_skipped(file.path, opened.problem);
            message.contents.push_back(Content{number, opened.fd.is_open(), opened.facts});
            if (opened.fd) fds.push_back(std::move(opened.fd));
        }
        std::vector<int> borrowed;
        for (const auto &fd : fds)
            borrowed.push_back(fd.get());
        send_to_writer(transfer_, message, borrowed);
    }

    const ReadingPlan &plan_;
    FdRef transfer_;
    FdRef channel_;
    std::vector<UniqueFd> tops_; // one for each source; none where it is missing
    std::size_t source_ = 0;
    std::vector<DirectoryId> above_;
    std::vector<ListedFile> files_;
    std::vector<ListedEntry> listing_;
    std::size_t pending_ = 0;
    std::size_t entries_ = 0;
    std::uint64_t total_ = 0;
    std::size_t skipped_ = 0;
};

} // namespace

void read_config(const AsUser & /*user*/, const ReadingPlan &plan, FdRef transfer, FdRef channel)
{
    Reading reading(plan, transfer, channel);
    reading.open_sources();
    reading.send_documents();
    reading.list();
    fault_point("listed");
    reading.serve();
    send_answer(channel, "");
}

} // namespace pi_agent
