// What runs code outside, as found by one look at the shown tree, and the differences between two looks.
#pragma once

#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// If the first look found no such thing.
enum class Appearing {
    counts,
    counts_in_known_directory, // a directory that came as a whole is on nobody's PATH yet
    is_ordinary,
};

// One thing that would run code, as it was found.
struct Mark {
    std::string identity;               // inode, size, times and mode: equal means unchanged
    std::optional<std::string> content; // if it is small: a new identity with equal content is not a change
    timespec changed{};                 // ctime, which no program can set
    Appearing appearing = Appearing::counts;
    bool found_first = false; // in the places that are searched first
};

struct Snapshot {
    std::map<std::pair<std::string, std::string>, Mark> marks; // by absolute path and kind
    std::set<std::string> program_directories;                 // that could be listed
    bool has_first_places = false;                             // the first places are complete
    bool is_complete = false;                                  // and everything else is
    std::vector<std::string> not_looked_at;                    // directories that were left out; the first few
    std::size_t more_not_looked_at = 0;
};

struct Finding {
    std::string path; // absolute, any bytes
    std::string what;
    bool appeared; // otherwise it changed
};

// `start`: a time before any process of the session ran. If the first look was incomplete, or the agent may have been faster, it proves
// nothing about things older than that.
std::vector<Finding> compare(const Snapshot &before, const Snapshot &after, const timespec &start);

// Strictly.
bool is_later(const timespec &time, const timespec &than) noexcept;

} // namespace pi_agent
