// Marks: what a file is known again by.
#include "wrapper/marker.hpp"

#include <dirent.h>

namespace pi_agent {

namespace {

constexpr off_t content_limit = 64UL * 1024; // bytes of one file that are kept; of a larger one its identity has to do

std::string identity_of(const struct stat &facts)
{
    std::string text;
    for (const long long number : {static_cast<long long>(facts.st_dev), static_cast<long long>(facts.st_ino),
                                   static_cast<long long>(facts.st_size), static_cast<long long>(facts.st_mode),
                                   static_cast<long long>(facts.st_mtim.tv_sec), static_cast<long long>(facts.st_mtim.tv_nsec),
                                   static_cast<long long>(facts.st_ctim.tv_sec), static_cast<long long>(facts.st_ctim.tv_nsec)})
        text += std::to_string(number) + " ";
    return text;
}

Mark mark_of(const struct stat &facts)
{
    return Mark{identity_of(facts), std::nullopt, facts.st_ctim};
}

// npm's links to the programs of installed packages: as ordinary as the packages.
bool leads_to_a_package(const std::string &directory, const std::string &target)
{
    const std::string end = "node_modules/.bin";
    const bool of_packages =
        directory == end || (directory.size() > end.size() && directory.substr(directory.size() - end.size() - 1) == "/" + end);
    return of_packages && target.compare(0, 3, "../") == 0 && target.find("..", 3) == std::string::npos;
}

} // namespace

void Marker::add(const std::string &path, const std::string &what, Mark mark)
{
    mark.found_first = first_;
    if (mark.content) {
        if (mark.content->size() > content_left_)
            mark.content.reset();
        else
            content_left_ -= mark.content->size();
    }
    snapshot_.marks.emplace(std::pair(tree_.absolute(path), what), std::move(mark)); // the first time it is met
}

void Marker::file(const std::string &path, const std::string &what, Appearing appearing)
{
    auto facts = tree_.look(path, Links::refuse);
    if (!facts || S_ISDIR(facts->st_mode)) return;
    Mark mark = mark_of(*facts);
    mark.appearing = appearing;
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

void Marker::part(const std::string &path, const std::string &what, const struct stat &facts, std::string content, Appearing appearing)
{
    Mark mark = mark_of(facts);
    mark.content = std::move(content);
    mark.appearing = appearing;
    add(path, what, std::move(mark));
}

void Marker::other_names(const std::string &path, const std::string &what)
{
    const auto facts = tree_.look(path, Links::follow);
    if (facts && S_ISREG(facts->st_mode) && facts->st_nlink > 1)
        part(path, what + " with another name (a hard link)", *facts, std::to_string(facts->st_nlink));
}

void Marker::whole(const std::string &path, const std::string &what, const struct stat &facts)
{
    add(path, what, mark_of(facts));
}

void Marker::programs(const std::string &directory, Appearing appearing)
{
    const Listing listing = tree_.list(directory, Links::follow);
    if (listing.found == Listing::Found::unreadable) return unreadable(directory, listing.facts);
    if (listing.found == Listing::Found::nothing) return;
    snapshot_.program_directories.insert(tree_.absolute(directory));
    for (const auto &entry : listing.entries) {
        if (entry.type == DT_DIR) continue;
        const std::string path = directory.empty() ? entry.name : directory + "/" + entry.name;
        const auto facts = tree_.look(path, Links::follow);
        const bool is_run = entry.type == DT_LNK || (facts && (facts->st_mode & 0111U) != 0) || entry.name.compare(0, 8, "activate") == 0;
        if (!is_run) continue;
        const bool may_be_ordinary = entry.type == DT_LNK && appearing != Appearing::counts;
        if (may_be_ordinary && leads_to_a_package(directory, tree_.link_target(path).value_or(""))) continue;
        file(path, "program", appearing);
    }
}

void Marker::unreadable(const std::string &directory, const struct stat &facts)
{
    // Its times change with every file in it.
    part(directory, "directory that cannot be looked into", facts, std::to_string(facts.st_mode));
}

} // namespace pi_agent
