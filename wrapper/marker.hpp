// Writes findings in the shown tree into a snapshot.
#pragma once

#include "wrapper/shown_tree.hpp"
#include "wrapper/snapshot.hpp"

#include <string>

namespace pi_agent {

class Marker {
public:
    Marker(const ShownTree &tree, Snapshot &snapshot) : tree_(tree), snapshot_(snapshot) {}

    [[nodiscard]] const ShownTree &tree() const noexcept { return tree_; }
    [[nodiscard]] Snapshot &snapshot() const noexcept { return snapshot_; }
    // What is marked until the other call is in the places that are searched first.
    void begin_first_places() noexcept { first_ = true; }
    void end_first_places() noexcept { first_ = false; }

    // A file below the root, or a symlink: its content, and its target inside the tree. Directories are not marked.
    void file(const std::string &path, const std::string &what, Appearing appearing = Appearing::counts);
    // A part of that file, with the file's facts: equal content is not a change.
    void part(const std::string &path, const std::string &what, const struct stat &facts, std::string content,
              Appearing appearing = Appearing::counts);
    // A file with several names (hard links): another name can change it later, whatever protects this one.
    void other_names(const std::string &path, const std::string &what);
    // A thing that cannot be read, or is too large: any change counts.
    void whole(const std::string &path, const std::string &what, const struct stat &facts);
    // Programs in a directory from which programs are started, and files that a shell reads (`activate`); not what is below.
    void programs(const std::string &directory, Appearing appearing);
    // A directory that cannot be listed hides what is in it.
    void unreadable(const std::string &directory, const struct stat &facts);

private:
    void add(const std::string &path, const std::string &what, Mark mark);
    const ShownTree &tree_;
    Snapshot &snapshot_;
    bool first_ = false;
    std::size_t content_left_ = std::size_t{32} << 20U; // bytes kept, all together
};

} // namespace pi_agent
