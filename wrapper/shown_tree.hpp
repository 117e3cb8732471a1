// Searches the directory that a session sees, with bounds and without ever leaving it. A hostile tree cannot make the search hang, read
// something else, or go on for ever.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace pi_agent {

// The budget of one look. Once spent, it stays spent.
class Budget {
public:
    // It calls `is_cancelled` from time to time.
    Budget(std::size_t entries, Deadline deadline, std::function<bool()> is_cancelled)
        : entries_(entries), deadline_(deadline), is_cancelled_(std::move(is_cancelled))
    {
    }
    // One entry of a directory, or one file.
    void take_one() noexcept;
    [[nodiscard]] bool is_spent() const noexcept { return spent_; }

private:
    std::size_t entries_;
    Deadline deadline_;
    std::function<bool()> is_cancelled_;
    unsigned until_clock_ = 1; // reading the clock takes as long as some entries
    bool spent_ = false;
};

struct DirectoryEntry {
    std::string name;
    unsigned char type; // DT_REG, DT_DIR, DT_LNK or another (readdir(3)); never DT_UNKNOWN
};

struct Listing {
    enum class Found { listed, nothing, unreadable };
    Found found = Found::nothing; // nothing: also if it is not a directory
    struct stat facts {};
    std::vector<DirectoryEntry> entries; // those that the budget allowed
};

enum class Links { follow, refuse }; // inside the tree; a symlink out of it is never followed

class ShownTree {
public:
    // `path` is canonical. Empty if it cannot be opened.
    static std::optional<ShownTree> open(const std::string &path, Budget &budget);

    [[nodiscard]] const std::string &path() const noexcept { return path_; }
    [[nodiscard]] std::string absolute(const std::string &below) const { return below.empty() ? path_ : path_ + "/" + below; }
    // The part of an absolute path below the root, by its text; "" for the root itself.
    [[nodiscard]] std::optional<std::string> below(const std::string &absolute) const;

    // `path` is beneath the root, "" for the root itself. Nothing if the budget is spent, if nothing exists there, or if it is outside this
    // tree or on another mount.
    [[nodiscard]] std::optional<struct stat> look(const std::string &path, Links last) const;
    [[nodiscard]] std::optional<std::string> link_target(const std::string &path) const;
    // At most `limit` bytes of a regular file; empty for anything else.
    [[nodiscard]] std::optional<std::string> read(const std::string &path, std::size_t limit) const;
    [[nodiscard]] Listing list(const std::string &path, Links links) const;
    [[nodiscard]] Budget &budget() const noexcept { return *budget_; }

private:
    ShownTree(std::string path, UniqueFd root, Budget &budget) : path_(std::move(path)), root_(std::move(root)), budget_(&budget) {}
    [[nodiscard]] UniqueFd open_path(const std::string &path, Links last) const; // O_PATH
    std::string path_;
    UniqueFd root_;
    Budget *budget_;
};

// The text of a path without `.`, `..` and double slashes.
std::string normal_path(const std::string &path);

} // namespace pi_agent
