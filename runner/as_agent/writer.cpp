// The writing half of the config sync.
#include "runner/as_agent/writer.hpp"

#include "common/base/files.hpp"
#include "runner/as_agent/document_writer.hpp"
#include "runner/as_agent/places.hpp"
#include "runner/as_agent/replacement.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

constexpr std::size_t kept_notice_limit = 20;

// A file that is to be brought in, or only compared with what is inside.
struct Wanted {
    std::uint64_t number; // in the listing
    std::string path;
    bool compare;
};

class Writer {
public:
    Writer(const WritingPlaces &places, const WritingPlan &plan, FdRef transfer, FdRef channel)
        : places_(places), plan_(plan), transfer_(transfer), channel_(channel), manifest_(places.manifest, places.spare_manifest),
          inside_(places.home), writing_(places.home), documents_(plan, places.locked_settings, channel)
    {
    }

    // Only looks: a failure until its end changes nothing.
    void receive_listing()
    {
        for (;;) {
            Packet packet = receive();
            const SyncMessage message = decode_fields<SyncMessage>(packet.bytes);
            if (message.step == SyncStep::end_of_listing) return;
            if (message.step == SyncStep::document) {
                documents_.take_host(message, packet.fds.empty() ? FdRef(-1) : FdRef(packet.fds[0]));
            } else if (message.step == SyncStep::listing) {
                for (const auto &entry : message.entries)
                    take(entry);
                send_progress(channel_);
            } else {
                throw ProtocolError("the reader of the config broke the protocol");
            }
        }
    }

    void bring_in_line()
    {
        remove_content_beneath(places_.staging);                                  // left by a sync that was killed
        if (manifest_.rewrite_if_long()) send_answer(channel_, answer_rewritten); // now, too: what follows may fail each time
        const UniqueFd agent = ensure_directory_beneath(places_.home, agent_directory);
        documents_.write(agent, places_.staging, manifest_);
        remove_what_the_host_deleted();
        make_directories();
        fetch();
        if (kept_ > kept_notice_limit) send_answer(channel_, "config: and " + std::to_string(kept_ - kept_notice_limit) + " more kept");
        manifest_.flush();
        send_answer(channel_, "");
    }

private:
    Packet receive()
    {
        std::optional<Packet> packet = receive_packet(transfer_, in_seconds(sync_patience_seconds));
        // The reader died: it says why itself, and what was written so far is whole.
        if (!packet) throw Failure(ExitStatus::system_failure, "the reader of the config ended before it was done");
        return std::move(*packet);
    }

    [[nodiscard]] FileClass class_of(const std::string &path) const
    {
        const std::string_view top = agent_directory;
        const bool is_config = is_within(path, top) && path.size() > top.size() + 1;
        return is_config ? plan_.classes.of(std::string_view(path).substr(top.size() + 1)) : FileClass::mirror;
    }

    void take(const ListedEntry &entry)
    {
        if (entry.kind == EntryKind::unreadable) return unreadable_.push_back(entry.path);
        if (plan_.documents.contains(DocumentWriter::name_of(entry.path)))
            throw ProtocolError("the reader of the config listed a document as a file");
        if (entry.kind == EntryKind::file) return take_file(entry);
        ManifestEntry *known = manifest_.find(entry.path);
        if (known != nullptr) known->was_seen = known->is_directory;
        if (known == nullptr || !known->is_directory || inside_.look(entry.path).get() < 0) directories_.push_back(entry.path);
    }

    void take_file(const ListedEntry &entry)
    {
        const std::uint64_t number = files_++;
        ManifestEntry *known = manifest_.find(entry.path);
        const FileClass file_class = class_of(entry.path);
        const HostState host = known != nullptr && known->host == entry.facts ? HostState::unchanged : HostState::changed;
        const SyncAction action = decide_file(file_class, known != nullptr, host, inside_.state(entry.path, known));
        // Where a directory was synced was_seen stays false: that goes first.
        if (known != nullptr) known->was_seen = !known->is_directory;
        const bool unsure = action == SyncAction::leave && file_class == FileClass::mirror && known != nullptr && !known->is_settled();
        if (action == SyncAction::copy || unsure)
            wanted_.push_back(Wanted{number, entry.path, unsure});
        else if (action == SyncAction::adopt)
            adopted_.push_back(entry);
    }

    [[nodiscard]] bool is_unreadable(const std::string &path) const
    {
        return std::any_of(unreadable_.begin(), unreadable_.end(), [&path](const std::string &top) { return is_within(path, top); });
    }

    void remove_what_the_host_deleted()
    {
        for (const auto &entry : adopted_)
            manifest_.set(entry.path, ManifestEntry{false, entry.facts, {}, wall_clock_nanoseconds(), true});
        std::vector<std::string> gone;
        for (const auto &[path, entry] : manifest_.entries())
            if (!entry.was_seen && !documents_.merges(DocumentWriter::name_of(path)) && !is_unreadable(path)) gone.push_back(path);
        // What lies in a directory comes after it by name, so this order empties a directory before it meets it.
        std::sort(gone.begin(), gone.end(), std::greater<>());
        LastDirectory emptied(places_.home);
        for (std::size_t index = 0; index < gone.size(); ++index) {
            remove(gone[index], emptied);
            if (index % 64 == 0) send_progress(channel_);
        }
        if (!gone.empty()) inside_.forget();
        manifest_.flush();
    }

    void remove(const std::string &path, LastDirectory &emptied)
    {
        const ManifestEntry known = *manifest_.find(path);
        const auto [directory_path, name] = split_last(path);
        const InsideState inside = known.is_directory ? InsideState::as_synced : inside_.state(path, &known); // goes only when it is empty
        if (decide_file(class_of(path), true, HostState::absent, inside) == SyncAction::remove) {
            const FdRef directory = emptied.find(directory_path);
            // Only what was synced: a directory in a file's place, or one that still holds something, is the agent's.
            const bool removed =
                directory.get() >= 0 && unlinkat(directory.get(), name.c_str(), known.is_directory ? AT_REMOVEDIR : 0) == 0;
            if (!removed && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR && errno != EISDIR &&
                errno != ELOOP)
                throw_errno("removing " + escape_for_display(path) + ", which your configuration no longer has");
        }
        manifest_.forget(path);
    }

    void make_directories()
    {
        for (const auto &path : directories_)
            if (manifest_.find(path) == nullptr) manifest_.intend(path, true);
        manifest_.flush();
        for (std::size_t made = 0; made < directories_.size(); ++made) {
            const std::string &path = directories_[made];
            make_room(path);
            static_cast<void>(writing_.make(path));
            manifest_.set(path, ManifestEntry{true, {}, {}, wall_clock_nanoseconds(), true});
            if (made % 64 == 0) send_progress(channel_);
        }
    }

    // A file that the agent put where the host has a directory is kept.
    void make_room(const std::string &path)
    {
        const auto [directory_path, name] = split_last(path);
        struct stat facts {};
        const FdRef directory = writing_.make(directory_path);
        if (fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
            return require_gone("examining " + escape_for_display(path));
        if (!S_ISREG(facts.st_mode)) return; // a link goes
        report_kept(path, set_aside(directory, name));
    }

    void report_kept(const std::string &path, const std::string &kept)
    {
        if (++kept_ <= kept_notice_limit)
            send_answer(channel_, "config: what the agent had put at " + escape_for_display(path) + " in its home is kept beside it as " +
                                      escape_for_display(kept));
    }

    // Asks for the next files while those asked for before are on their way.
    void fetch()
    {
        std::size_t asked = ask(0);
        for (std::size_t done = 0; done < wanted_.size();) {
            const std::size_t until = asked;
            asked = ask(asked);
            while (done < until)
                done += receive_contents(done);
            send_progress(channel_,
                          "copying your configuration (" + std::to_string(done) + " of " + std::to_string(wanted_.size()) + " files)");
        }
        send_packet(transfer_, encode(WantedNumbers{}), {}, in_seconds(sync_patience_seconds));
    }

    std::size_t ask(std::size_t from)
    {
        const std::size_t until = std::min(from + wanted_limit, wanted_.size());
        std::vector<std::uint64_t> numbers;
        for (std::size_t index = from; index < until; ++index)
            numbers.push_back(wanted_[index].number);
        if (!numbers.empty()) send_packet(transfer_, encode(WantedNumbers{numbers}), {}, in_seconds(sync_patience_seconds));
        return until;
    }

    std::size_t receive_contents(std::size_t first)
    {
        Packet packet = receive();
        const SyncMessage message = decode_fields<SyncMessage>(packet.bytes);
        if (message.step != SyncStep::contents || message.contents.empty() || first + message.contents.size() > wanted_.size())
            throw ProtocolError("the reader of the config broke the protocol");
        for (std::size_t index = 0; index < message.contents.size(); ++index) {
            const Wanted &wanted = wanted_[first + index];
            if (message.contents[index].number != wanted.number) throw ProtocolError("the reader of the config mixed up its files");
            if (message.contents[index].readable && manifest_.find(wanted.path) == nullptr) manifest_.intend(wanted.path, false);
        }
        manifest_.flush();
        std::size_t next_fd = 0;
        for (std::size_t index = 0; index < message.contents.size(); ++index) {
            if (!message.contents[index].readable) continue;
            if (next_fd == packet.fds.size()) throw ProtocolError("the reader of the config sent too few descriptors");
            bring(wanted_[first + index], packet.fds[next_fd++], message.contents[index].facts);
        }
        return message.contents.size();
    }

    void bring(const Wanted &wanted, FdRef source, HostFacts facts)
    {
        const auto [directory_path, name] = split_last(wanted.path);
        const FdRef directory = writing_.make(directory_path);
        if (wanted.compare && settle(wanted, directory, name, source, facts)) return;
        // Only the owner's bits: the home is private, and setuid bits never travel.
        Replacement file(places_.staging, static_cast<mode_t>((facts.mode & 0700U) | 0600U));
        file.copy_from(source, facts, channel_);
        file.set_modified(facts.modified);
        const std::string kept = file.commit(directory, name);
        if (!kept.empty()) report_kept(wanted.path, kept);
        struct stat now = examine(file.fd(), "examining a config file in the agent's home");
        manifest_.set(wanted.path, ManifestEntry{false, facts, inside_facts(now), wall_clock_nanoseconds(), true});
    }

    // The times cannot tell whether the two still hold the same: their bytes can. False when they do not.
    bool settle(const Wanted &wanted, FdRef directory, const std::string &name, FdRef source, const HostFacts &facts)
    {
        const UniqueFd inside = open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        struct stat before {};
        if (!inside || fstat(inside.get(), &before) != 0 || !S_ISREG(before.st_mode)) return false;
        const std::int64_t now = wall_clock_nanoseconds();
        if (!have_same_bytes(source, inside, [&] { send_progress(channel_); })) return false;
        manifest_.set(wanted.path, ManifestEntry{false, facts, inside_facts(before), now, true});
        return true;
    }

    const WritingPlaces &places_;
    const WritingPlan &plan_;
    FdRef transfer_;
    FdRef channel_;
    Manifest manifest_;
    LastDirectory inside_; // only looks
    LastDirectory writing_;
    DocumentWriter documents_;
    std::uint64_t files_ = 0;
    std::vector<Wanted> wanted_;
    std::vector<ListedEntry> adopted_;
    std::vector<std::string> directories_;
    std::vector<std::string> unreadable_;
    std::size_t kept_ = 0;
};

} // namespace

void write_config(const AsUser & /*agent*/, const WritingPlaces &places, const WritingPlan &plan, FdRef transfer, FdRef channel)
{
    umask(077);
    Writer writer(places, plan, transfer, channel);
    writer.receive_listing();
    writer.bring_in_line();
}

} // namespace pi_agent
