// Lists what the user's config holds, and follows the text of its links as long as they stay in the tree.
#include "runner/as_user/reader.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/as_user/named_files.hpp"

#include <deque>

namespace pi_agent {

// Follows the text of a link, component by component, as long as it stays in the tree.

namespace {

using Components = std::vector<std::string>;

std::string path_of(const Components &components)
{
    std::string path;
    for (const auto &one : components)
        path = join_path(path, one);
    return path;
}

Components components_above(const std::string &path)
{
    return path_components(split_last(path).first);
}

class WayInTree {
public:
    WayInTree(const ListedTree &tree, const std::string &link, const MayLeadTo &may_lead_to)
        : tree_(tree), may_lead_to_(may_lead_to), at_(components_above(link))
    {
    }

    // False where it leaves the tree.
    bool follow(const std::string &target)
    {
        if (!go_on_with(target)) return false;
        while (!ahead_.empty()) {
            const std::string name = std::move(ahead_.front());
            ahead_.pop_front();
            if (!(name == ".." ? step_back() : step(name))) return false;
        }
        return may_lead_to_(path_of(at_));
    }

    [[nodiscard]] const Components &end() const noexcept { return at_; }

private:
    bool go_on_with(const std::string &target)
    {
        if (target.empty() || ++links_ > most_links) return false;
        Components parts = path_components(target);
        if (target.front() == '/' && !begin_at_top(parts)) return false;
        ahead_.insert(ahead_.begin(), parts.begin(), parts.end());
        return true;
    }

    // The text decides, as it does in an agents' directory: this looks at nothing outside.
    bool begin_at_top(Components &parts)
    {
        for (const auto &name : tree_.names) {
            const Components own = path_components(name);
            if (parts.size() < own.size() || !std::equal(own.begin(), own.end(), parts.begin())) continue;
            parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(own.size()));
            at_.clear();
            return true;
        }
        return false;
    }

    bool step_back()
    {
        if (at_.empty() || !is_directory_) return false;
        at_.pop_back();
        return true;
    }

    bool step(const std::string &name)
    {
        Components next = at_;
        next.push_back(name);
        const std::string path = path_of(next);
        const UniqueFd place = find_beneath(tree_.top->fd, path, O_PATH);
        struct stat facts {};
        if (!place || fstat(place.get(), &facts) != 0) return false;
        // A symlink on the way is a symlink inside only if the agent gets it unchanged.
        if (S_ISLNK(facts.st_mode)) return may_lead_to_(path) && go_on_with(read_link(place, ""));
        is_directory_ = S_ISDIR(facts.st_mode);
        at_ = std::move(next);
        return is_directory_ || S_ISREG(facts.st_mode);
    }

    const ListedTree &tree_;
    const MayLeadTo &may_lead_to_;
    Components at_; // no link among them
    std::deque<std::string> ahead_;
    bool is_directory_ = true; // what is at `at_`
    int links_ = 0;
};

std::string way_from(const Components &from, const Components &to)
{
    const auto [left, right] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
    Components way(static_cast<std::size_t>(from.end() - left), "..");
    way.insert(way.end(), right, to.end());
    return way.empty() ? "." : path_of(way);
}

} // namespace

std::optional<std::string> find_kept_link(const ListedTree &tree, const std::string &path, const std::string &target,
                                          const MayLeadTo &may_lead_to)
{
    WayInTree way(tree, path, may_lead_to);
    if (!way.follow(target)) return std::nullopt;
    return target.front() == '/' ? way_from(components_above(path), way.end()) : target;
}

// Lists what the user's config holds.

namespace {

constexpr std::size_t listing_depth_limit = 128;
constexpr std::size_t skipped_names_limit = 20;

} // namespace

std::string shown_of(const ConfigSource &source, const std::string &path)
{
    return escape_for_display(path.empty() ? source.directory : source.directory + "/" + path);
}

void wait_for_the_end()
{
    for (;;)
        pause();
}

void send_to_writer(FdRef transfer, const SyncMessage &message, const std::vector<int> &fds)
{
    try {
        send_packet(transfer, encode(message), fds, in_seconds(sync_patience_seconds));
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != EPIPE && failure.error_number() != ECONNRESET) throw;
        wait_for_the_end();
    }
}

void SkippedNames::name(const std::string &shown, const std::string &reason)
{
    if (++count_ <= skipped_names_limit) send_answer(channel_, "config: skipped " + shown + ": " + reason);
}

void SkippedNames::tell_rest() const
{
    if (count_ > skipped_names_limit) send_answer(channel_, "and " + std::to_string(count_ - skipped_names_limit) + " more");
}

bool ListedAmount::take_entry(const std::string &path)
{
    ++parts_[path.substr(0, path.find('/'))];
    return ++entries_ <= entry_limit;
}

bool ListedAmount::take_bytes(std::uint64_t count)
{
    if (count > total_limit - bytes_) return false;
    bytes_ += count;
    return true;
}

std::string ListedAmount::largest_part() const
{
    const auto most =
        std::max_element(parts_.begin(), parts_.end(), [](const auto &one, const auto &other) { return one.second < other.second; });
    return most == parts_.end() ? "" : most->first;
}

void Listing::list(std::size_t number, const UserPlacePtr &top)
{
    number_ = number;
    tree_ = tree_at(top, "");
    enter(top, "");
}

void Listing::end()
{
    flush();
    send_to_writer(transfer_, SyncMessage{SyncStep::end_of_listing, {}, {}, {}, {}});
}

std::string Listing::shown(const std::string &path) const
{
    return shown_of(source(), path);
}

void Listing::enter(const UserPlacePtr &place, const std::string &path)
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

bool Listing::is_document(const std::string &path) const
{
    return source().is_config && std::find(plan_.documents.begin(), plan_.documents.end(), path) != plan_.documents.end();
}

bool Listing::is_listed(const std::string &path) const
{
    return !source().is_config || is_copied(plan_.classes.of(path));
}

void Listing::visit(const UserPlacePtr &parent, const std::string &name, const std::string &path)
{
    if (is_document(path)) return; // whatever happened to it since it was sent
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

ListedTree Listing::tree_at(const UserPlacePtr &top, const std::string &path) const
{
    return ListedTree{top, path, {top->path, join_path(source().directory, path)}};
}

// The target of a symlink must belong to the user as much as the symlink: otherwise the agent could change what its user mirrors.
bool Listing::may_lead_to(const std::string &path, FileClass own) const
{
    if (!source().is_config) return true;
    const std::optional<FileClass> there = plan_.classes.of_all(path);
    return there == own || there == FileClass::mirror;
}

// False where the symlink must be followed.
bool Listing::keep_link(const UserPlacePtr &parent, const std::string &name, const std::string &path, const struct stat &facts)
{
    const std::string target = read_link(parent->fd, name);
    const FileClass own = plan_.classes.of(path);
    const std::string in_tree = tree_.path.empty() ? path : path.substr(tree_.path.size() + 1);
    const auto kept = defence_is_on("links-in-tree")
                          ? find_kept_link(tree_, in_tree, target,
                                           [&](const std::string &met) {
                                               return may_lead_to(met.empty() ? tree_.path : join_path(tree_.path, met), own);
                                           })
                          : std::optional(target);
    const std::string inside = join_path(source().inside, path);
    if (!kept || !is_kept_link(inside, *kept)) return false;
    add(EntryKind::link, path, facts_of(facts), *kept);
    return true;
}

void Listing::take(const std::string &path, const struct stat &facts, bool listed, bool by_agents)
{
    if (!listed) return;
    if (!S_ISREG(facts.st_mode)) return skip(path, "neither a file nor a directory", false);
    const HostFacts told = facts_of(facts);
    if (told.size > config_file_limit && defence_is_on("file-limit")) return skip(path, "larger than 256 MiB");
    const std::string whole = whole_of(path);
    if (!amount_of(path, whole, by_agents).take_bytes(told.size)) {
        if (!whole.empty()) return leave_out(whole);
        if (!by_agents) refuse_size("holds more than 2 GiB");
        return skip(path, "with it, what agents can have written here is more than 2 GiB");
    }
    files_.push_back(ListedFile{number_, path});
    add(EntryKind::file, path, told);
}

// The amount that an entry counts against; `whole` is its tree of class `once`, or "".
ListedAmount &Listing::amount_of(const std::string &path, const std::string &whole, bool by_agents)
{
    if (!whole.empty()) return for_once_[path.substr(0, path.find('/'))];
    return by_agents ? from_agents_ : from_user_;
}

// Agents must not stop their user from starting one by filling a directory.
void Listing::too_many(bool by_agents, const std::string &path)
{
    const std::string what = "holds more than " + std::to_string(entry_limit) + " entries";
    if (!by_agents) refuse_size(what);
    if (from_agents_.entries() == entry_limit + 1) skip(path, "what agents can have written here " + what + "; the rest is left out");
}

// The tree of class `once` that it belongs to, or "".
std::string Listing::whole_of(const std::string &path) const
{
    return source().is_config && plan_.classes.of(path) == FileClass::once ? plan_.classes.whole_of(path) : "";
}

// A part of the tree would be of no use. Its size must not stop a start: it may be for the user's own agent alone.
void Listing::leave_out(const std::string &whole)
{
    if (left_out_.insert(whole).second)
        skip(whole, "this part of the config holds more than " + std::to_string(entry_limit) + " entries or 2 GiB");
}

void Listing::add(EntryKind kind, const std::string &path, const HostFacts &facts, const std::string &target)
{
    std::string inside = source().inside;
    if (!path.empty()) inside += "/" + path;
    pending_ += inside.size() + target.size() + 72;
    listing_.push_back(ListedEntry{kind, std::move(inside), facts, target});
    if (pending_ > listing_bytes) flush();
}

void Listing::refuse_size(const std::string &what) const
{
    const std::string part = from_user_.largest_part();
    throw Failure(FailureKind::user_configuration, shown("") + " " + what + ", most entries of it in " + shown(part) +
                                                       ", and cannot be copied for the agent; move files that are not configuration "
                                                       "elsewhere, or ask the administrator to leave it out (config.classes: {" +
                                                       escape_for_display(part) + ": never})");
}

void Listing::flush()
{
    if (listing_.empty()) return;
    send_to_writer(transfer_, SyncMessage{SyncStep::listing, {}, {}, std::move(listing_), {}});
    listing_.clear();
    pending_ = 0;
}

// `keep`: nobody knows what is there now, so what was copied before stays.
void Listing::skip(const std::string &path, const std::string &reason, bool keep)
{
    skipped_.name(shown(path), reason);
    if (keep) add(EntryKind::unreadable, path, {});
}

} // namespace pi_agent
