// Looking at a tree by descriptor.
#include "wrapper/shown_tree.hpp"

#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <linux/openat2.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr unsigned entries_between_clocks = 32;

unsigned char type_of(mode_t mode) noexcept
{
    return static_cast<unsigned char>(IFTODT(mode));
}

// Opens what an O_PATH descriptor stands for; it has been judged, so nothing else can be behind the name.
UniqueFd reopen(FdRef place, int flags)
{
    const std::string name = "/proc/self/fd/" + std::to_string(place.get());
    return UniqueFd::adopt(open(name.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

} // namespace

void Budget::take_one() noexcept
{
    if (spent_) return;
    if (entries_ == 0) {
        spent_ = true;
        return;
    }
    --entries_;
    if (--until_clock_ != 0) return;
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
    const UniqueFd file = regular ? reopen(place, O_RDONLY)
                                  : UniqueFd::adopt(::open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), O_RDONLY | O_CLOEXEC));
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
    UniqueFd directory = reopen(place, O_RDONLY | O_DIRECTORY);
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
            type = type_of(facts.st_mode);
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

} // namespace pi_agent
