// The writing half of the config sync.
#include "runner/as_agent/writer.hpp"

#include "common/base/files.hpp"
#include "runner/as_agent/home.hpp"

namespace pi_agent {

namespace {

// The reader died: it reports the reason itself, and every file that was written so far is whole.
Failure reader_is_gone()
{
    return Failure(ExitStatus::limit, "the process that reads your configuration ended early; try again");
}

Packet receive_from_reader(FdRef transfer)
{
    std::optional<Packet> packet = receive_packet(transfer, in_seconds(sync_patience_seconds));
    if (!packet) throw reader_is_gone();
    return std::move(*packet);
}

void ask_reader(FdRef transfer, const std::vector<std::uint64_t> &numbers)
{
    if (!reaches(transfer, WantedNumbers{numbers})) throw reader_is_gone();
}

// Names what the agent had where its user has something else.
void report_kept(CountedNotices &notices, const std::string &path, const std::string &kept)
{
    if (kept.empty()) return;
    notices.tell("config: what the agent had put at " + escape_for_display(path) + " in its home is kept beside it as " +
                 escape_for_display(kept));
}

// A file to bring in, or only to compare with the copy inside.
struct Wanted {
    std::uint64_t number; // in the listing
    std::string path;
    bool compare;
};

// Asks the reader for files and puts their copies into the agent's home, each in one step.
class Fetching {
public:
    Fetching(const WritingPlaces &places, FdRef transfer, FdRef channel, Manifest &manifest, LastDirectory &writing, CountedNotices &kept)
        : places_(places), transfer_(transfer), channel_(channel), manifest_(manifest), writing_(writing), kept_(kept)
    {
    }

    void want(Wanted file) { wanted_.push_back(std::move(file)); }

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
        ask_reader(transfer_, {});
    }

private:
    std::size_t ask(std::size_t from)
    {
        const std::size_t until = std::min(from + wanted_limit, wanted_.size());
        std::vector<std::uint64_t> numbers;
        for (std::size_t index = from; index < until; ++index)
            numbers.push_back(wanted_[index].number);
        if (!numbers.empty()) ask_reader(transfer_, numbers);
        return until;
    }

    std::size_t receive_contents(std::size_t first)
    {
        Packet packet = receive_from_reader(transfer_);
        const auto message = decode_fields<SyncMessage>(packet.bytes);
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
        report_kept(kept_, wanted.path, file.commit(directory, name));
        struct stat now = examine(file.fd(), "examining a config file in the agent's home");
        manifest_.set(wanted.path, ManifestEntry{false, facts, inside_facts(now), wall_clock_nanoseconds(), true});
    }

    // The times cannot tell whether the two files still hold the same, so this compares their bytes. False when they differ.
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
    FdRef transfer_;
    FdRef channel_;
    Manifest &manifest_;
    LastDirectory &writing_;
    CountedNotices &kept_;
    std::vector<Wanted> wanted_;
};

class Writer {
public:
    Writer(const WritingPlaces &places, const WritingPlan &plan, FdRef transfer, FdRef channel)
        : places_(places), plan_(plan), transfer_(transfer), channel_(channel), manifest_(places.manifest, places.spare_manifest),
          inside_(places.home), writing_(places.home), kept_(channel), fetching_(places, transfer, channel, manifest_, writing_, kept_),
          once_(plan.classes, inside_), documents_(plan, places.locked_settings, channel)
    {
    }

    // Only looks: a failure before its end changes nothing.
    void receive_listing()
    {
        for (;;) {
            Packet packet = receive_from_reader(transfer_);
            const auto message = decode_fields<SyncMessage>(packet.bytes);
            if (message.step == SyncStep::end_of_listing) break;
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
        once_.judge(manifest_, unreadable_);
        for (const auto &listed : once_.entries())
            take_once(listed);
    }

    void bring_in_line()
    {
        remove_content_beneath(places_.staging);                                  // left by a sync that was killed
        if (manifest_.rewrite_if_long()) send_answer(channel_, answer_rewritten); // now, because what follows may fail each time
        documents_.write(ensure_directory_beneath(places_.home, agent_directory), places_.staging, manifest_);
        remove_what_the_host_deleted();
        make_directories();
        fetching_.fetch();
        make_links();
        tell_left_behind();
        tell_missing_packages();
        kept_.tell_rest("config: and ", " more kept");
        manifest_.flush();
        send_answer(channel_, "");
    }

private:
    [[nodiscard]] FileClass class_of(const std::string &path) const
    {
        const std::string_view in_config = path_in_config(path);
        return in_config.empty() ? FileClass::mirror : plan_.classes.of(in_config);
    }

    void take(const ListedEntry &entry)
    {
        if (entry.kind == EntryKind::unreadable) return unreadable_.push_back(entry.path);
        if (plan_.documents.contains(DocumentWriter::name_of(entry.path)))
            throw ProtocolError("the reader of the config listed a document as a file");
        ManifestEntry *known = manifest_.find(entry.path);
        const std::uint64_t number = entry.kind == EntryKind::file ? files_++ : files_;
        // Remove what has another kind first.
        if (known != nullptr)
            known->was_seen =
                known->is_directory == (entry.kind == EntryKind::directory) && known->is_link == (entry.kind == EntryKind::link);
        if (class_of(entry.path) == FileClass::once) return once_.take(entry, number, known);
        if (entry.kind == EntryKind::directory)
            take_directory(entry, known);
        else
            take_file(entry, number, known);
    }

    void take_directory(const ListedEntry &entry, const ManifestEntry *known)
    {
        if (known == nullptr || !known->is_directory || inside_.look(entry.path).get() < 0) directories_.push_back(entry.path);
    }

    void take_file(const ListedEntry &entry, std::uint64_t number, const ManifestEntry *known)
    {
        const FileClass file_class = class_of(entry.path);
        const HostState host = known != nullptr && known->host == entry.facts ? HostState::unchanged : HostState::changed;
        const SyncAction action = decide_file(file_class, known != nullptr, host, inside_.state(entry.path, known));
        const bool mirrors = action == SyncAction::leave && file_class == FileClass::mirror && known != nullptr;
        if (entry.kind == EntryKind::link) { // the new path inside may differ, though the user's symlink is the same
            if (action == SyncAction::copy || (mirrors && !says(entry))) links_.push_back(entry);
        } else if (const bool unsure = mirrors && !known->is_settled(); unsure || action == SyncAction::copy) {
            fetching_.want({number, entry.path, unsure});
        }
        if (action == SyncAction::adopt) adopted_.push_back(entry);
    }

    void take_once(const ListedOnce &listed)
    {
        const InsideState inside = once_.state_of(listed.entry.path, listed.inside);
        if (decide_file(FileClass::once, listed.known, listed.host, inside) != SyncAction::copy) return;
        if (listed.entry.kind == EntryKind::directory) return take_directory(listed.entry, manifest_.find(listed.entry.path));
        if (listed.entry.kind == EntryKind::link) return links_.push_back(listed.entry);
        fetching_.want({listed.number, listed.entry.path, false});
    }

    [[nodiscard]] bool says(const ListedEntry &link)
    {
        const auto [directory_path, name] = split_last(link.path);
        const FdRef directory = inside_.look(directory_path);
        return directory.get() >= 0 && read_link(directory, name) == link.target;
    }

    [[nodiscard]] bool is_unreadable(const std::string &path) const
    {
        return std::any_of(unreadable_.begin(), unreadable_.end(), [&path](const std::string &top) { return is_within(path, top); });
    }

    void remove_what_the_host_deleted()
    {
        for (const auto &entry : adopted_)
            manifest_.set(entry.path, ManifestEntry{false, entry.facts, {}, wall_clock_nanoseconds(), true, entry.kind == EntryKind::link});
        std::vector<std::string> gone;
        for (const auto &[path, entry] : manifest_.entries())
            if (!entry.was_seen && !documents_.merges(DocumentWriter::name_of(path)) && !is_unreadable(path)) gone.push_back(path);
        // The content of a directory sorts after the directory's own name, so the reversed order empties a directory before removing it.
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
        InsideState inside = known.is_directory ? InsideState::as_synced : inside_.state(path, &known); // goes only when it is empty
        if (class_of(path) == FileClass::once && inside != InsideState::absent) inside = once_.state_of(path, inside);
        const SyncAction action = decide_file(class_of(path), true, HostState::absent, inside);
        if (action == SyncAction::leave) return;
        if (action == SyncAction::remove) {
            const FdRef directory = emptied.find(directory_path);
            // Removes only what was synced. A directory where a file was, or one that is not empty yet, belongs to the agent.
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
        report_kept(kept_, path, set_aside(directory, name));
    }

    // Last, so that nothing is written through a symlink, and their targets exist.
    void make_links()
    {
        for (const auto &link : links_)
            if (manifest_.find(link.path) == nullptr) manifest_.intend(link.path, false, true);
        manifest_.flush();
        for (std::size_t made = 0; made < links_.size(); ++made) {
            const ListedEntry &link = links_[made];
            const auto [directory_path, name] = split_last(link.path);
            const FdRef directory = writing_.make(directory_path);
            report_kept(kept_, link.path, put_link(places_.staging, link.target, directory, name));
            struct stat now {};
            if (fstatat(directory.get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) throw_errno("examining a link in the agent's home");
            manifest_.set(link.path, ManifestEntry{false, link.facts, inside_facts(now), wall_clock_nanoseconds(), true, true});
            if (made % 64 == 0) send_progress(channel_);
        }
    }

    void tell_missing_packages()
    {
        std::string missing;
        for (const auto &package : documents_.packages()) {
            const bool is_there = std::any_of(package.places.begin(), package.places.end(), [this](const std::string &place) {
                return find_beneath(places_.home, place, O_PATH).is_open();
            });
            if (!is_there) missing += (missing.empty() ? "" : ", ") + escape_for_display(package.source.substr(0, 256));
        }
        if (missing.empty()) return;
        send_answer(channel_,
                    std::string(answer_told_once) +
                        "config: settings.json names packages that neither you nor the agent has installed: " + missing.substr(0, 2048) +
                        "; the agent tries it when it starts, which fails after a while where the network does not reach their "
                        "source; install them where it does, or take them out of \"packages\"");
    }

    void tell_left_behind()
    {
        for (const auto &whole : once_.left_behind())
            send_answer(channel_,
                        std::string(answer_told_once) + "config: ~/" + escape_for_display(whole) +
                            " of the agent's home is the agent's own by now, so what you have changed in yours stays outside; to "
                            "have yours again, remove the agent's in a session (pi --pi-agent-shell): the next start brings it in");
    }

    const WritingPlaces &places_;
    const WritingPlan &plan_;
    FdRef transfer_;
    FdRef channel_;
    Manifest manifest_;
    LastDirectory inside_; // only looks
    LastDirectory writing_;
    CountedNotices kept_;
    Fetching fetching_;
    OnceTrees once_;
    DocumentWriter documents_;
    std::uint64_t files_ = 0;
    std::vector<ListedEntry> links_;
    std::vector<ListedEntry> adopted_;
    std::vector<std::string> directories_;
    std::vector<std::string> unreadable_;
};

void furnish_home(const AsUser &agent, const WritingPlaces &places, FdRef defaults, FdRef channel)
{
    seed_defaults(agent, places.home, places.staging, defaults, channel);
    // A session whose umask took its owner's permissions left the directory closed, and then no agent starts.
    find_own_directory_beneath(places.home, std::string(agent_directory) + "/sessions");
    copy_version(agent, places.home, places.staging, running_version());
}

void link_project(const AsUser &agent, FdRef home, const WritingPlan &plan, FdRef channel)
{
    if (plan.project_alias.empty()) return;
    const std::string problem = link_alias(agent, home, plan.project_alias, plan.project_path);
    if (!problem.empty()) send_answer(channel, problem + ", so it has no link to the project");
}

} // namespace

WritingPlan with_held_models(WritingPlan plan)
{
    if (plan.held_providers.empty()) return plan;
    std::string &models = plan.documents["models.json"].managed;
    models = dump_with_numbers(
        merge_managed(parse_json_object(models, "the managed models.json"), parse_json_object(plan.held_models, "the held models.json")));
    return plan;
}

void write_config(const AsUser &agent, const WritingPlaces &places, const WritingPlan &plan, FdRef transfer, FdRef channel)
{
    umask(077);
    if (plan.defaults.get() >= 0) furnish_home(agent, places, plan.defaults, channel);
    link_project(agent, places.home, plan, channel);
    fault_point("writing");
    const WritingPlan whole = with_held_models(plan);
    Writer writer(places, whole, transfer, channel);
    writer.receive_listing();
    writer.bring_in_line();
}

} // namespace pi_agent
