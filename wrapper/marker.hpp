// Writes into a snapshot what was found in the shown tree.
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
    // What is marked until the other call is in the places that are looked at before all others.
    void begin_first_places() noexcept { first_ = true; }
    void end_first_places() noexcept { first_ = false; }

    // A file beneath the root, or a link: what it says and, within the tree, what it leads to. Directories are not marked.
    void file(const std::string &path, const std::string &what, Appearing appearing = Appearing::counts);
    // Something in that file, whose facts are given: equal contents are no change.
    void part(const std::string &path, const std::string &what, const struct stat &facts, std::string content,
              Appearing appearing = Appearing::counts);
    // A file with several names (hard links): by another one it is changed later, whatever protects this one.
    void other_names(const std::string &path, const std::string &what);
    // Something that cannot be looked into, or is too large for it: any change counts.
    void whole(const std::string &path, const std::string &what, const struct stat &facts);
    // What can be run in a directory that programs are taken from, or is read by a shell (`activate`); not what is below.
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
