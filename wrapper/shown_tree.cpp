// Looks at a tree by descriptor, marks what is found, and compares two looks.
#include "wrapper/aftermath.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"

#include <filesystem>
#include <linux/openat2.h>

namespace pi_agent {

namespace {

constexpr unsigned entries_between_clocks = 32;

// Opens what an O_PATH descriptor stands for; it has been judged, so nothing else can be behind the name.
UniqueFd reopen(FdRef place, int flags)
{
    return UniqueFd::adopt(open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), flags | O_NOCTTY | O_CLOEXEC));
}

bool is_same(const Mark &before, const Mark &after)
{
    return before.identity == after.identity || (before.content && after.content && *before.content == *after.content);
}

bool has_appeared(const Snapshot &before, const std::string &path, const Mark &mark, const timespec &start)
{
    if (mark.appearing == Appearing::is_ordinary) return false;
    if (mark.appearing == Appearing::counts_in_known_directory && !before.program_directories.contains(path.substr(0, path.rfind('/'))))
        return false;
    const bool was_looked_for = before.is_complete || (mark.found_first && before.has_first_places);
    return was_looked_for || is_later(mark.changed, start);
}

constexpr off_t content_limit = 64UL * 1024; // bytes of one file that are kept; of a larger one its identity has to do

std::string identity_of(const struct stat &facts)
{
    const auto joined = [](auto... numbers) { return ((std::to_string(numbers) + " ") + ...); };
    return joined(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mode, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec,
                  facts.st_ctim.tv_sec, facts.st_ctim.tv_nsec);
}

// npm's links to the programs of installed packages: as ordinary as the packages.
bool leads_to_a_package(const std::string &directory, const std::string &target)
{
    return ("/" + directory).ends_with("/node_modules/.bin") && target.starts_with("../") && target.find("..", 3) == std::string::npos;
}

} // namespace

// Looking at a tree by descriptor.

void Budget::take_one() noexcept
{
    spent_ = spent_ || entries_-- == 0;
    if (spent_ || --until_clock_ != 0) return;
    until_clock_ = entries_between_clocks;
    spent_ = Clock::now() >= deadline_ || is_cancelled_();
}

std::optional<ShownTree> ShownTree::open(const std::string &path, Budget &budget)
{
    UniqueFd root = UniqueFd::adopt(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!root) return std::nullopt;
    return ShownTree(path, std::move(root), budget);
}

std::optional<std::string> ShownTree::below(const std::string &absolute) const
{
    if (!is_within(absolute, path_)) return std::nullopt;
    return absolute.substr(std::min(path_.size() + 1, absolute.size()));
}

UniqueFd ShownTree::open_path(const std::string &path, Links last) const
{
    budget_->take_one();
    if (budget_->is_spent()) return UniqueFd(); // whoever is in the middle of something comes to its end
    // Mounts inside were not shown to the session either.
    const std::uint64_t resolve = defence_is_on("aftermath-beneath") ? RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS : 0;
    return open_resolved(root_, path, O_PATH | (last == Links::refuse ? O_NOFOLLOW : 0), resolve);
}

std::optional<struct stat> ShownTree::look(const std::string &path, Links last) const
{
    const UniqueFd place = open_path(path, last);
    struct stat facts {};
    if (!place || fstat(place.get(), &facts) != 0) return std::nullopt;
    return facts;
}

std::optional<std::string> ShownTree::link_target(const std::string &path) const
{
    const UniqueFd place = open_path(path, Links::refuse);
    std::string target = place ? read_link(place, "") : "";
    if (target.empty()) return std::nullopt;
    return target;
}

std::optional<std::string> ShownTree::read(const std::string &path, std::size_t limit) const
{
    const UniqueFd place = open_path(path, Links::follow);
    struct stat facts {};
    if (!place || fstat(place.get(), &facts) != 0) return std::nullopt;
    // Opening a pipe waits for its other end, and opening a device does things.
    const bool regular = defence_is_on("aftermath-regular-files");
    if (regular && !S_ISREG(facts.st_mode)) return std::nullopt;
    const UniqueFd file = reopen(place, O_RDONLY | (regular ? O_NONBLOCK : 0));
    if (!file) return std::nullopt;
    std::string content(std::min(limit, static_cast<std::size_t>(std::max<off_t>(facts.st_size, 0)) + 1), '\0');
    std::size_t length = 0;
    while (length < content.size()) {
        const ssize_t count = ::read(file.get(), content.data() + length, content.size() - length);
        if (count < 0) return std::nullopt;
        if (count == 0) break;
        length += static_cast<std::size_t>(count);
    }
    content.resize(length);
    return content;
}

Listing ShownTree::list(const std::string &path, Links links) const
{
    Listing listing;
    const UniqueFd place = open_path(path, links);
    if (!place || fstat(place.get(), &listing.facts) != 0 || !S_ISDIR(listing.facts.st_mode)) return listing;
    UniqueFd directory = reopen(place, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    listing.found = directory ? Listing::Found::listed : Listing::Found::unreadable;
    if (!directory) return listing;
    DirectoryStream stream(std::move(directory));
    if (!stream) return listing;
    while (!budget_->is_spent()) {
        const dirent *entry = stream.next();
        if (entry == nullptr) break;
        budget_->take_one();
        unsigned char type = entry->d_type;
        struct stat facts {};
        if (type == DT_UNKNOWN && fstatat(stream.fd().get(), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0)
            type = static_cast<unsigned char>(IFTODT(facts.st_mode));
        listing.entries.push_back(DirectoryEntry{entry->d_name, type});
    }
    return listing;
}

std::string normal_path(const std::string &path)
{
    std::string text = std::filesystem::path(path).lexically_normal().string();
    while (text.size() > 1 && text.back() == '/')
        text.pop_back();
    return text == "." ? "" : text;
}

// Comparing two looks.

bool is_later(const timespec &time, const timespec &than) noexcept
{
    return time.tv_sec != than.tv_sec ? time.tv_sec > than.tv_sec : time.tv_nsec > than.tv_nsec;
}

std::vector<Finding> compare(const Snapshot &before, const Snapshot &after, const timespec &start)
{
    std::vector<Finding> findings;
    std::vector<Finding> others;
    for (const auto &[key, mark] : after.marks) {
        std::vector<Finding> &list = mark.found_first ? findings : others; // the nearest repository is what the user goes on with
        const auto earlier = before.marks.find(key);
        // What the first look found younger than the session's start may be the agent's own.
        const bool was_there = earlier != before.marks.end() && !is_later(earlier->second.changed, start);
        if (!was_there && has_appeared(before, key.first, mark, start))
            list.push_back(Finding{key.first, key.second, true});
        else if (was_there && !is_same(earlier->second, mark))
            list.push_back(Finding{key.first, key.second, false});
    }
    findings.insert(findings.end(), others.begin(), others.end());
    return findings;
}

// Marks: what a file is known again by.

void Marker::add(const std::string &path, const std::string &what, Mark mark)
{
    mark.found_first = first_;
    if (mark.content && mark.content->size() > content_left_) mark.content.reset();
    content_left_ -= mark.content ? mark.content->size() : 0;
    snapshot_.marks.emplace(std::pair(tree_.absolute(path), what), std::move(mark)); // the first time it is met
}

void Marker::file(const std::string &path, const std::string &what, Appearing appearing)
{
    auto facts = tree_.look(path, Links::refuse);
    if (!facts || S_ISDIR(facts->st_mode)) return;
    Mark mark{identity_of(*facts), std::nullopt, facts->st_ctim, appearing};
    std::string link;
    if (S_ISLNK(facts->st_mode)) {
        link = "link to " + tree_.link_target(path).value_or("") + '\0';
        const auto behind = tree_.look(path, Links::follow);
        if (behind) mark.identity += identity_of(*behind);
        if (behind && is_later(behind->st_ctim, mark.changed)) mark.changed = behind->st_ctim;
        if (!behind || S_ISDIR(behind->st_mode)) mark.content = link;
        facts = behind;
    }
    if (facts && S_ISREG(facts->st_mode) && facts->st_size <= content_limit)
        if (auto content = tree_.read(path, content_limit)) mark.content = link + ((facts->st_mode & 0111U) != 0 ? "x" : "-") + *content;
    add(path, what, std::move(mark));
}

void Marker::part(const std::string &path, const std::string &what, const struct stat &facts, std::optional<std::string> content,
                  Appearing appearing)
{
    add(path, what, Mark{identity_of(facts), std::move(content), facts.st_ctim, appearing});
}

void Marker::other_names(const std::string &path, const std::string &what)
{
    const auto facts = tree_.look(path, Links::follow);
    if (facts && S_ISREG(facts->st_mode) && facts->st_nlink > 1)
        part(path, what + " with another name (a hard link)", *facts, std::to_string(facts->st_nlink));
}

std::vector<DirectoryEntry> Marker::entries(const std::string &directory)
{
    Listing listing = tree_.list(directory, Links::follow);
    if (listing.found == Listing::Found::unreadable) unreadable(directory, listing.facts);
    return std::move(listing.entries);
}

void Marker::programs(const std::string &directory, Appearing appearing)
{
    const Listing listing = tree_.list(directory, Links::follow);
    if (listing.found == Listing::Found::unreadable) return unreadable(directory, listing.facts);
    if (listing.found == Listing::Found::nothing) return;
    snapshot_.program_directories.insert(tree_.absolute(directory));
    for (const auto &entry : listing.entries) {
        if (entry.type == DT_DIR) continue;
        const std::string path = join_path(directory, entry.name);
        const auto facts = tree_.look(path, Links::follow);
        const bool is_run = entry.type == DT_LNK || (facts && (facts->st_mode & 0111U) != 0) || entry.name.starts_with("activate");
        if (!is_run) continue;
        const bool may_be_ordinary = entry.type == DT_LNK && appearing != Appearing::counts;
        if (may_be_ordinary && leads_to_a_package(directory, tree_.link_target(path).value_or(""))) continue;
        file(path, "program", appearing);
    }
}

} // namespace pi_agent
