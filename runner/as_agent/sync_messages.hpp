// What reader (as the user) and writer (as the agent) send to each other: names, facts and open descriptors, never paths to follow.
#pragma once

#include "runner/wire/answer.hpp"
#include "runner/wire/user_files.hpp"

#include <ctime>

namespace pi_agent {

constexpr std::int64_t nanoseconds_of(const timespec &time) noexcept
{
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// What calls like stat(2) report about a host's file; equal facts mean an unchanged file. Times in nanoseconds.
struct HostFacts {
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::int64_t modified = 0;
    std::int64_t changed = 0;
    std::uint64_t mode = 0;
    friend bool operator==(const HostFacts &, const HostFacts &) = default;

    static void fields(auto &archive, auto &self) { archive(self.inode, self.size, self.modified, self.changed, self.mode); }
};

inline HostFacts facts_of(const struct stat &facts) noexcept
{
    return HostFacts{facts.st_ino, static_cast<std::uint64_t>(facts.st_size), nanoseconds_of(facts.st_mtim), nanoseconds_of(facts.st_ctim),
                     facts.st_mode & 0777U};
}

enum class EntryKind : std::uint64_t {
    file = 1,
    directory = 2,
    unreadable = 3, // nobody can tell what is there: what is inside at or below this path stays as it is
    link = 4,       // stays a symlink: it leads to something else that is brought in
};

// True for "a/b": not empty, not absolute, no '.', '..', empty component or NUL, at most 4096 bytes.
inline bool is_plain_relative(std::string_view path) noexcept
{
    return path.size() <= 4096 && path.find('\0') == std::string_view::npos && !has_odd_component(path);
}

// The text that a symlink at `path` may have: relative, and never leading out of the two directories that `path` begins with (".pi/agent").
inline bool is_kept_link(std::string_view path, std::string_view target)
{
    if (target.empty() || target.size() > 4096 || target.front() == '/' || target.find('\0') != std::string_view::npos) return false;
    return !leads_above(target, std::count(path.begin(), path.end(), '/') - 2);
}

// `path` is relative to the agent's home.
struct ListedEntry {
    EntryKind kind = EntryKind::file;
    std::string path;
    HostFacts facts;         // of a file, or of a symlink itself
    std::string target = {}; // of a symlink: its new text

    static void fields(auto &archive, auto &self)
    {
        archive(self.kind, self.path);
        archive.require([&] { return self.kind >= EntryKind::file && self.kind <= EntryKind::link && is_plain_relative(self.path); },
                        "the reader of the config listed what it may not");
        if (self.kind == EntryKind::file || self.kind == EntryKind::link) archive(self.facts);
        if (self.kind != EntryKind::link) return;
        archive(self.target);
        archive.require([&] { return is_kept_link(self.path, self.target); }, "the reader of the config listed a link that it may not");
    }
};

// One file that the writer asked for by its number in the listing, with a descriptor, or without one when it cannot be read.
struct Content {
    std::uint64_t number{};
    bool readable{};
    HostFacts facts; // of the descriptor, before anything was read from it

    static void fields(auto &archive, auto &self)
    {
        archive(self.number, self.readable);
        if (self.readable) archive(self.facts);
    }
};

// Reader to writer, in this order: documents, listings, one end of the listing, then contents as the writer asks for them.
enum class SyncStep : std::uint64_t { document = 1, listing = 2, end_of_listing = 3, contents = 4 };

struct SyncMessage {
    SyncStep step{};
    std::string name;                 // document: which; carries a descriptor where the host has one
    std::string place;                // document: the host's path, for messages
    std::vector<ListedEntry> entries; // listing
    std::vector<Content> contents;    // contents; carries the descriptors of the readable ones, in order
    bool by_agents = false;           // document: it is in a place where agents write

    static void fields(auto &archive, auto &self)
    {
        archive(self.step);
        archive.require([&] { return self.step >= SyncStep::document && self.step <= SyncStep::contents; },
                        "the reader of the config sent an unknown message");
        if (self.step == SyncStep::document) archive(self.name, self.place, self.by_agents);
        if (self.step == SyncStep::listing) archive(self.entries);
        if (self.step == SyncStep::contents) archive(self.contents);
    }
};

constexpr std::size_t wanted_limit = 64; // files in one request

// Writer to reader: the numbers of the files it wants, or none when it has all.
struct WantedNumbers {
    std::vector<std::uint64_t> numbers;

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.numbers, wanted_limit, "the writer of the config wants too much at once");
    }
};

constexpr std::size_t listing_bytes = packet_limit - 4UL * 4096; // a longer listing is sent; a path is at most 4096

// Sends to the other side. False where it has ended: it told the runner why.
inline bool reaches(FdRef transfer, const auto &message, const std::vector<int> &fds = {})
{
    try {
        send_packet(transfer, encode(message), fds, in_seconds(sync_patience_seconds));
        return true;
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != EPIPE && failure.error_number() != ECONNRESET) throw;
        return false;
    }
}

// Notices of one kind for the user: so many, and then how many more.
class CountedNotices {
public:
    explicit CountedNotices(FdRef channel) : channel_(channel) {}
    void tell(const std::string &notice)
    {
        if (++count_ <= limit) send_answer(channel_, notice);
    }
    void tell_rest(const std::string &before, const std::string &behind) const
    {
        if (count_ > limit) send_answer(channel_, before + std::to_string(count_ - limit) + behind);
    }

private:
    static constexpr std::size_t limit = 20;
    FdRef channel_;
    std::size_t count_ = 0;
};

} // namespace pi_agent
