// The reading half of the config sync: lists what the user's config holds, and opens by number what the writer asks for.
#include "runner/as_user/reader.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/as_user/protected_paths.hpp"

namespace pi_agent {

namespace {

constexpr int lock_patience_milliseconds = 1000;
constexpr std::size_t entry_limit = 200'000;
constexpr std::uint64_t total_limit = std::uint64_t{2} << 30U;
constexpr std::uint64_t config_file_limit = std::uint64_t{256} << 20U;
constexpr std::size_t listing_depth_limit = 128;

std::string shown_of(const ConfigSource &source, const std::string &path)
{
    return escape_for_display(path.empty() ? source.directory : source.directory + "/" + path);
}

// Call it when the writer has ended: it told the runner why, and the runner ends us.
[[noreturn]] void wait_for_the_end()
{
    for (;;)
        pause();
}

// Sends to the writer, which ends first when something goes wrong with its writing.
void send_to_writer(FdRef transfer, const SyncMessage &message, const std::vector<int> &fds = {})
{
    if (!reaches(transfer, message, fds)) wait_for_the_end();
}

// How much is listed, and where most of it comes from.
class ListedAmount {
public:
    // `path` is beneath the directory that is listed. False when this is one too many.
    [[nodiscard]] bool take_entry(const std::string &path)
    {
        ++parts_[path.substr(0, path.find('/'))];
        return ++entries_ <= entry_limit;
    }

    [[nodiscard]] bool take_bytes(std::uint64_t count)
    {
        if (count > total_limit - bytes_) return false;
        bytes_ += count;
        return true;
    }

    [[nodiscard]] std::size_t entries() const noexcept { return entries_; }

    // The first component that most of the paths share.
    [[nodiscard]] std::string largest_part() const
    {
        const auto most =
            std::max_element(parts_.begin(), parts_.end(), [](const auto &one, const auto &other) { return one.second < other.second; });
        return most == parts_.end() ? "" : most->first;
    }

private:
    std::size_t entries_ = 0;
    std::uint64_t bytes_ = 0;
    std::map<std::string, std::size_t> parts_;
};

// A directory that is brought in as it is: the top of a source, or the target of a symlink that is followed.
struct ListedTree {
    UserPlacePtr top;
    std::string path; // where the agent has it, relative to the source; "" for the source's own top
    std::string name; // how an absolute symlink may begin to mean this tree, besides the top's own path
};

// A file of the listing, opened when the writer asks for it.
struct ListedFile {
    std::size_t source;
    std::string path; // relative to the source
};

class Listing {
public:
    Listing(const ReadingPlan &plan, const UserPaths &paths, FdRef transfer, FdRef channel, CountedNotices &skipped)
        : plan_(plan), paths_(paths), transfer_(transfer), channel_(channel), skipped_(skipped)
    {
    }

    // Lists one source, whose top is open.
    void list(std::size_t number, const UserPlacePtr &top)
    {
        number_ = number;
        tree_ = tree_at(top, "");
        enter(top, "");
    }

    void end()
    {
        flush();
        send_to_writer(transfer_, SyncMessage{SyncStep::end_of_listing, {}, {}, {}, {}});
    }

    [[nodiscard]] const std::vector<ListedFile> &files() const noexcept { return files_; }

private:
    [[nodiscard]] const ConfigSource &source() const { return plan_.sources[number_]; }

    [[nodiscard]] std::string shown(const std::string &path) const { return shown_of(source(), path); }

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
            visit(place, name, join_path(path, name));
        }
        if (errno != 0) skip(path, SystemFailure(errno, "reading").what());
        above_.pop_back();
    }

    [[nodiscard]] bool is_listed(const std::string &path) const { return !source().is_config || is_copied(plan_.classes.of(path)); }

    void visit(const UserPlacePtr &parent, const std::string &name, const std::string &path)
    {
        const std::vector<std::string> &documents = plan_.documents;
        if (source().is_config && std::find(documents.begin(), documents.end(), path) != documents.end())
            return; // whatever happened to it since it was sent
        const bool listed = is_listed(path);
        if (!listed && !plan_.classes.copies_below(path)) return;
        const bool by_agents = parent->written_by != nullptr;
        const std::string whole = whole_of(path);
        if (left_out_.contains(whole)) return;
        ListedAmount &amount = amount_of(path, whole, by_agents);
        if (!amount.take_entry(path)) return whole.empty() ? too_many(by_agents, path) : leave_out(whole);
        if (source().inside.size() + 1 + path.size() > 4096) return skip(path, "its path is longer than 4096 bytes", false);
        if (amount.entries() % 256 == 0)
            send_progress(channel_, "looking at " + shown("") + " (" + std::to_string(amount.entries()) + " entries)");

        // Cheap for an entry of the directory itself. A symlink, another file system, or a place where agents write gets a closer look.
        struct stat facts {};
        if (fstatat(parent->fd.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
            return skip(path, SystemFailure(errno, "examining").what());
        if (S_ISLNK(facts.st_mode) && listed && keep_link(parent, name, path, facts)) return;
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
        if (elsewhere && is_kernels(place->fd)) return skip(path, "the kernel makes that file");
        if (!S_ISDIR(place->facts.st_mode)) return take(path, place->facts, listed, by_agents || place->written_by != nullptr);
        if (!S_ISLNK(facts.st_mode)) return enter(place, path);
        const ListedTree around = std::exchange(tree_, tree_at(place, path));
        enter(place, path);
        tree_ = around;
    }

    [[nodiscard]] ListedTree tree_at(const UserPlacePtr &top, const std::string &path) const
    {
        return ListedTree{top, path, join_path(source().directory, path)};
    }

    // The target of a symlink must belong to the user as much as the symlink: otherwise the agent could change what its user mirrors.
    [[nodiscard]] bool may_lead_to(const std::string &path, FileClass own) const
    {
        if (!source().is_config) return true;
        const std::optional<FileClass> there = plan_.classes.of_all(path);
        return there == own || there == FileClass::mirror;
    }

    // False where the symlink must be followed.
    bool keep_link(const UserPlacePtr &parent, const std::string &name, const std::string &path, const struct stat &facts)
    {
        const std::string target = read_link(parent->fd, name);
        const FileClass own = plan_.classes.of(path);
        const std::string in_tree = tree_.path.empty() ? path : path.substr(tree_.path.size() + 1);
        const auto kept = defence_is_on("links-in-tree")
                              ? find_kept_link({tree_.top->fd, tree_.top->path, tree_.name}, in_tree, target,
                                               [&](const std::string &met) {
                                                   return may_lead_to(met.empty() ? tree_.path : join_path(tree_.path, met), own);
                                               })
                              : std::optional(target);
        if (const std::string inside = join_path(source().inside, path); !kept || !is_kept_link(inside, *kept)) return false;
        add(EntryKind::link, path, facts_of(facts), *kept);
        return true;
    }

    void take(const std::string &path, const struct stat &facts, bool listed, bool by_agents = false)
    {
        if (!listed) return;
        if (!S_ISREG(facts.st_mode)) return skip(path, "neither a file nor a directory", false);
        const HostFacts told = facts_of(facts);
        if (told.size > config_file_limit && defence_is_on("file-limit")) return skip(path, "larger than 256 MiB");
        if (const std::string whole = whole_of(path); !amount_of(path, whole, by_agents).take_bytes(told.size)) {
            if (!whole.empty()) return leave_out(whole);
            if (!by_agents) refuse_size("holds more than 2 GiB");
            return skip(path, "with it, what agents can have written here is more than 2 GiB");
        }
        files_.push_back(ListedFile{number_, path});
        add(EntryKind::file, path, told);
    }

    // The amount that an entry counts against; `whole` is its tree of class `once`, or "".
    ListedAmount &amount_of(const std::string &path, const std::string &whole, bool by_agents)
    {
        if (!whole.empty()) return for_once_[path.substr(0, path.find('/'))];
        return by_agents ? from_agents_ : from_user_;
    }

    // Agents must not stop their user from starting one by filling a directory.
    void too_many(bool by_agents, const std::string &path)
    {
        const std::string what = "holds more than " + std::to_string(entry_limit) + " entries";
        if (!by_agents) refuse_size(what);
        if (from_agents_.entries() == entry_limit + 1) skip(path, "what agents can have written here " + what + "; the rest is left out");
    }

    // The tree of class `once` that it belongs to, or "".
    [[nodiscard]] std::string whole_of(const std::string &path) const
    {
        return source().is_config && plan_.classes.of(path) == FileClass::once ? plan_.classes.whole_of(path) : "";
    }

    // A part of the tree would be of no use. Its size must not stop a start: it may be for the user's own agent alone.
    void leave_out(const std::string &whole)
    {
        if (left_out_.insert(whole).second)
            skip(whole, "this part of the config holds more than " + std::to_string(entry_limit) + " entries or 2 GiB");
    }

    void add(EntryKind kind, const std::string &path, const HostFacts &facts, const std::string &target = {})
    {
        std::string inside = source().inside;
        if (!path.empty()) inside += "/" + path;
        pending_ += inside.size() + target.size() + 72;
        listing_.push_back(ListedEntry{kind, std::move(inside), facts, target});
        if (pending_ > listing_bytes) flush();
    }

    [[noreturn]] void refuse_size(const std::string &what) const
    {
        const std::string part = from_user_.largest_part();
        throw Failure(FailureKind::user_configuration, shown("") + " " + what + ", most entries of it in " + shown(part) +
                                                           ", and cannot be copied for the agent; move files that are not configuration "
                                                           "elsewhere, or ask the administrator to leave it out (config.classes: {" +
                                                           escape_for_display(part) + ": never})");
    }

    void flush()
    {
        if (listing_.empty()) return;
        send_to_writer(transfer_, SyncMessage{SyncStep::listing, {}, {}, std::move(listing_), {}});
        listing_.clear();
        pending_ = 0;
    }

    // `keep`: nobody knows what is there now, so what was copied before stays.
    void skip(const std::string &path, const std::string &reason, bool keep = true)
    {
        skipped_.tell("config: skipped " + shown(path) + ": " + reason);
        if (keep) add(EntryKind::unreadable, path, {});
    }

    const ReadingPlan &plan_;
    const UserPaths &paths_;
    FdRef transfer_;
    FdRef channel_;
    CountedNotices &skipped_;
    std::size_t number_ = 0; // of the source
    ListedTree tree_;
    std::vector<const struct stat *> above_;
    std::vector<ListedFile> files_;
    std::vector<ListedEntry> listing_;
    std::size_t pending_ = 0;
    ListedAmount from_user_;
    ListedAmount from_agents_;                     // what they can have written
    std::map<std::string, ListedAmount> for_once_; // of class `once`, whoever wrote it, by the first name of its path
    std::set<std::string> left_out_;               // of that class
};

// Lists the sources, and opens by number what the writer asks for.
class Reading {
public:
    Reading(const ReadingPlan &plan, FdRef transfer, FdRef channel)
        : plan_(plan), paths_(plan.agents), transfer_(transfer), channel_(channel), skipped_(channel),
          listing_(plan, paths_, transfer, channel, skipped_)
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

    // Looks at names, and at no session.
    void tell_sessions_outside()
    {
        const UserPlacePtr &top = tops_.front();
        if (!top || plan_.sessions_outside.empty()) return;
        try {
            const UserPlacePtr place = paths_.follow(top, plan_.sessions_outside);
            const UniqueFd directory = open_to_list(*place);
            if (!directory || !find_name(directory, [](const std::string &name) { return name.ends_with(".jsonl"); })) return;
            send_answer(channel_,
                        std::string(answer_told_once) + "config: your sessions of this directory (" +
                            shown_of(plan_.sources.front(), plan_.sessions_outside) +
                            ") stay outside, since they may hold what your agent read in other places; to bring copies of them in, "
                            "start once with: pi --pi-agent-sessions");
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): without sessions there is nothing to report
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
        for (std::size_t index = 0; index < tops_.size(); ++index)
            if (tops_[index]) listing_.list(index, tops_[index]);
        listing_.end();
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
        skipped_.tell_rest("and ", " more");
    }

private:
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

    void send_contents(const std::vector<std::uint64_t> &numbers)
    {
        SyncMessage message{SyncStep::contents, {}, {}, {}, {}};
        std::vector<UniqueFd> fds;
        for (const std::uint64_t number : numbers) {
            if (number >= listing_.files().size()) throw ProtocolError("the writer of the config wants what was not listed");
            const ListedFile &file = listing_.files()[number];
            HostFile opened = open_host_file(paths_, tops_[file.source], file.path);
            if (opened.fd && opened.facts.size > config_file_limit && defence_is_on("file-limit"))
                opened = {{}, {}, "larger than 256 MiB", opened.by_agents};
            if (!opened.fd) skipped_.tell("config: skipped " + shown_of(plan_.sources[file.source], file.path) + ": " + opened.problem);
            message.contents.push_back(Content{number, opened.fd.is_open(), opened.facts});
            if (opened.fd) fds.push_back(std::move(opened.fd));
        }
        send_to_writer(transfer_, message, mapped(fds, [&](const auto &fd) { return fd.get(); }));
    }

    const ReadingPlan &plan_;
    UserPaths paths_;
    FdRef transfer_;
    FdRef channel_;
    std::vector<UserPlacePtr> tops_; // one for each source; none where it is missing
    CountedNotices skipped_;
    Listing listing_;
};

} // namespace

void read_config(const AsUser & /*user*/, const ReadingPlan &plan, FdRef transfer, FdRef channel)
{
    Reading reading(plan, transfer, channel);
    reading.open_sources();
    reading.tell_sessions_outside();
    for (const auto &notice : name_missing_places(plan))
        send_answer(channel, std::string(answer_told_once) + notice);
    reading.send_documents();
    reading.list();
    fault_point("listed");
    reading.serve();
    send_answer(channel, "");
}

} // namespace pi_agent
