// The reading half of the config sync.
#include "runner/as_user/reader.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_user/named_files.hpp"
#include "runner/plan/limits.hpp"
#include "runner/wire/answer.hpp"
#include "runner/wire/sync_messages.hpp"

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr std::size_t listing_depth_limit = 128;
constexpr std::size_t notice_limit = 20;
constexpr std::uint64_t file_limit = std::uint64_t{256} << 20U;
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

// A file of the listing, to be opened when the writer wants it.
struct ListedFile {
    std::size_t source;
    std::string path; // relative to the source
};

// Lists the sources, and opens what is asked for by number.
class Reading {
public:
    Reading(const ReadingPlan &plan, FdRef transfer, FdRef channel)
        : plan_(plan), paths_(plan.agents), transfer_(transfer), channel_(channel)
    {
    }

    void open_sources()
    {
        for (const auto &source : plan_.sources) {
            std::string left_out;
            tops_.push_back(open_source_directory(paths_, source.directory,
                                                  source.is_config ? "your config directory" : "your directory of skills", left_out));
            if (!left_out.empty()) send_answer(channel_, "config: " + left_out);
        }
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
            enter(tops_[source_], "");
        }
        flush();
        send_to_writer(transfer_, SyncMessage{SyncStep::end_of_listing, {}, {}, {}, {}});
    }

    void serve()
    {
        for (;;) {
            const std::optional<Packet> packet = receive_packet(transfer_, in_seconds(sync_patience_seconds));
            if (!packet) wait_for_the_end();
            const std::vector<std::uint64_t> numbers = decode_fields<WantedNumbers>(packet->bytes).numbers;
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

    void send_document(const UserPlacePtr &directory, const std::string &name, const std::string &place)
    {
        HostFile file;
        if (directory) {
            wait_for_lock(directory->fd, name, lock_patience_milliseconds);
            std::string left_out;
            file = open_document(paths_, directory, name, place, left_out);
            if (!left_out.empty()) send_answer(channel_, "config: " + left_out);
        }
        SyncMessage message{SyncStep::document, name, place, {}, {}, file.by_agents};
        send_to_writer(transfer_, message, file.fd ? std::vector<int>{file.fd.get()} : std::vector<int>{});
    }

    void enter(const UserPlacePtr &place, const std::string &path)
    {
        const struct stat &facts = place->facts;
        if (std::any_of(above_.begin(), above_.end(), [&](const auto *one) { return is_same_file(*one, facts); }))
            return skip(path, "a link back to a directory above it");
        if (above_.size() >= listing_depth_limit) return skip(path, "nested too deep");
        DirectoryStream stream(open_to_list(*place));
        if (!stream) return skip(path, SystemFailure(errno, "opening").what());
        if (!path.empty() && is_listed(path)) add(EntryKind::directory, path, {});
        above_.push_back(&facts);
        while (const dirent *entry = stream.next()) {
            const std::string name = entry->d_name;
            visit(place, name, path.empty() ? name : path + "/" + name);
        }
        if (errno != 0) skip(path, SystemFailure(errno, "reading").what());
        above_.pop_back();
    }

    [[nodiscard]] bool is_document(const std::string &path) const
    {
        return source().is_config && std::find(plan_.documents.begin(), plan_.documents.end(), path) != plan_.documents.end();
    }

    [[nodiscard]] bool is_listed(const std::string &path) const { return !source().is_config || is_copied(plan_.classes.of(path)); }

    void visit(const UserPlacePtr &parent, const std::string &name, const std::string &path)
    {
        if (is_document(path)) return; // whatever has become of it since it was sent
        const bool listed = is_listed(path);
        if (!listed && !plan_.classes.copies_below(path)) return;
        const bool by_agents = parent->written_by != nullptr;
        ListedAmount &amount = by_agents ? from_agents_ : from_user_;
        if (!amount.take_entry(path)) return too_many(by_agents, path);
        if (source().inside.size() + 1 + path.size() > 4096) return skip(path, "its path is longer than 4096 bytes", false);
        if (amount.entries() % 256 == 0)
            send_progress(channel_, "looking at " + shown("") + " (" + std::to_string(amount.entries()) + " entries)");

        // Cheap for what lies in the directory itself; a link, another file system or what agents write is looked at more closely.
        struct stat facts {};
        if (fstatat(parent->fd.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
            return skip(path, SystemFailure(errno, "examining").what());
        const bool elsewhere = S_ISLNK(facts.st_mode) || facts.st_dev != parent->facts.st_dev;
        if (!elsewhere && !by_agents && !S_ISDIR(facts.st_mode)) return take(path, facts, listed);
        UserPlacePtr place;
        try {
            place = paths_.follow(parent, name);
        } catch (const NotFollowed &refusal) {
            return skip(path, refusal.what(), !refusal.leads_out());
        } catch (const SystemFailure &failure) {
            const int problem = failure.error_number();
            return skip(path, problem == ELOOP ? "a loop of links" : SystemFailure(problem, "opening").what());
        }
        if (elsewhere && is_kernels(place->fd)) return skip(path, "a file of the kernel's");
        if (S_ISDIR(place->facts.st_mode)) return enter(place, path);
        take(path, place->facts, listed, by_agents || place->written_by != nullptr);
    }

    void take(const std::string &path, const struct stat &facts, bool listed, bool by_agents = false)
    {
        if (!listed) return;
        if (!S_ISREG(facts.st_mode)) return skip(path, "neither a file nor a directory", false);
        const HostFacts told = facts_of(facts);
        if (told.size > file_limit && defence_is_on("file-limit")) return skip(path, "larger than 256 MiB");
        if (!(by_agents ? from_agents_ : from_user_).take_bytes(told.size)) {
            if (!by_agents) refuse_size("holds more than 2 GiB");
            return skip(path, "with it, what agents can have written here is more than 2 GiB");
        }
        files_.push_back(ListedFile{source_, path});
        add(EntryKind::file, path, told);
    }

    // What agents fill must not keep their user from starting one.
    void too_many(bool by_agents, const std::string &path)
    {
        const std::string what = "holds more than " + std::to_string(entry_limit) + " entries";
        if (!by_agents) refuse_size(what);
        if (from_agents_.entries() == entry_limit + 1) skip(path, "what agents can have written here " + what + "; the rest is left out");
    }

    void add(EntryKind kind, const std::string &path, const HostFacts &facts)
    {
        std::string inside = source().inside;
        if (!path.empty()) inside += "/" + path;
        pending_ += inside.size() + 64;
        listing_.push_back(ListedEntry{kind, std::move(inside), facts});
        if (pending_ > listing_bytes) flush();
    }

    [[noreturn]] void refuse_size(const std::string &what) const
    {
        const std::string part = from_user_.largest_part();
        throw Failure(ExitStatus::configuration,
                      shown("") + " " + what + ", most entries of it in " + shown(part) +
                          ", and cannot be copied for the agent; move what is no configuration to another place, "
                          "or ask the administrator to leave it out (config.classes: {" +
                          escape_for_display(part) + ": never})");
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
            HostFile opened = open_host_file(paths_, tops_[file.source], file.path);
            if (opened.fd && opened.facts.size > file_limit && defence_is_on("file-limit"))
                opened = {{}, {}, "larger than 256 MiB", opened.by_agents};
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
    UserPaths paths_;
    FdRef transfer_;
    FdRef channel_;
    std::vector<UserPlacePtr> tops_; // one for each source; none where it is missing
    std::size_t source_ = 0;
    std::vector<const struct stat *> above_;
    std::vector<ListedFile> files_;
    std::vector<ListedEntry> listing_;
    std::size_t pending_ = 0;
    ListedAmount from_user_;
    ListedAmount from_agents_; // what they can have written
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
