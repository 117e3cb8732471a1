// What runs code outside, as one look at the shown tree found it, and what differs between two looks.
#pragma once

#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// When nothing like it was there at the first look.
enum class Appearing {
    counts,
    counts_in_known_directory, // a directory that came as a whole is on nobody's PATH yet
    is_ordinary,
};

// One thing that would run code, as it was found.
struct Mark {
    std::string identity;               // inode, size, times and mode: equal means unchanged
    std::optional<std::string> content; // where it is small: two identities of one content are no change
    timespec changed{};                 // ctime, which no program can set
    Appearing appearing = Appearing::counts;
    bool found_first = false; // in the places that are looked at before all others
};

struct Snapshot {
    std::map<std::pair<std::string, std::string>, Mark> marks; // by absolute path and what it is
    std::set<std::string> program_directories;                 // that could be listed
    bool has_first_places = false;                             // all that is looked at first was looked at
    bool is_complete = false;                                  // and all the rest
    std::vector<std::string> not_looked_at;                    // directories, where it is not; the first few
    std::size_t more_not_looked_at = 0;
};

struct Finding {
    std::string path; // absolute, any bytes
    std::string what;
    bool appeared; // else changed
};

// `start`: when nothing of the session had run yet. A first look that was not complete, or that the agent may have overtaken, proves
// nothing about what is older than that.
std::vector<Finding> compare(const Snapshot &before, const Snapshot &after, const timespec &start);

// Strictly.
bool is_later(const timespec &time, const timespec &than) noexcept;

} // namespace pi_agent
