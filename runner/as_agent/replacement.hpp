// New files for the agent's home: asked of the reader, made out of the agent's sight, each in its place in one step.
#pragma once

#include "runner/as_agent/manifest.hpp"
#include "runner/as_agent/writer.hpp"
#include "runner/wire/answer.hpp"

namespace pi_agent {

// New files for the agent's home, made out of its sight: each takes its place in one step.
class Replacement {
public:
    // In `staging`, with `mode`. It vanishes again unless it is committed.
    Replacement(FdRef staging, mode_t mode);
    Replacement(const Replacement &) = delete;
    Replacement &operator=(const Replacement &) = delete;
    ~Replacement();

    [[nodiscard]] FdRef fd() const noexcept { return fd_; }

    // Fills it with `source`, from its beginning. `facts` describe `source` as it was before; when the source changed meanwhile, they
    // become those of what was copied. Calls send_progress(channel) at times.
    void copy_from(FdRef source, HostFacts &facts, FdRef channel);

    void set_modified(std::int64_t nanoseconds);

    // Call it before a commit: after a power cut the file is the old or the new one, not an empty one (rename(2) alone promises nothing on
    // disk).
    void make_durable();

    // Replaces `name` in `directory`. A directory there is removed when it is empty, else set aside (returned: its new name, else "").
    std::string commit(FdRef directory, const std::string &name);

    // Becomes `name` in `directory` only where nothing has that name, not even a symlink to nothing. False where it may not, or something
    // has.
    bool commit_new(FdRef directory, const std::string &name);

private:
    FdRef staging_;
    std::string temporary_;
    UniqueFd fd_;
    bool committed_ = false;
};

// The same for a symlink with the text `target`; this follows no symlink.
std::string put_link(FdRef staging, const std::string &target, FdRef directory, const std::string &name);

// Gives the home the files that every home begins with, wherever it has none of that name: runs as the agent, follows no symlink. Copies
// each regular file of `defaults`, at any depth, to the same place in `home` unless something has its name there, a symlink to nothing
// included. Where a directory is needed and something else is there (a file, a symlink, a directory that the agent closed), all beneath it
// is left out. New files are made in `staging`; send_progress(channel) is called at times.
void seed_defaults(const AsUser &agent, FdRef home, FdRef staging, FdRef defaults, FdRef channel);

// Asks the reader for files and puts their copies into the agent's home, each in one step.

Packet receive_from_reader(FdRef transfer);

// Names what the agent had where its user has something else, up to a number.
class KeptNames {
public:
    explicit KeptNames(FdRef channel) : channel_(channel) {}
    void report(const std::string &path, const std::string &kept);
    void tell_rest() const;

private:
    FdRef channel_;
    std::size_t count_ = 0;
};

// A file to bring in, or only to compare with the copy inside.
struct Wanted {
    std::uint64_t number; // in the listing
    std::string path;
    bool compare;
};

class Fetching {
public:
    Fetching(const WritingPlaces &places, FdRef transfer, FdRef channel, Manifest &manifest, LastDirectory &writing, KeptNames &kept)
        : places_(places), transfer_(transfer), channel_(channel), manifest_(manifest), writing_(writing), kept_(kept)
    {
    }

    void want(Wanted file) { wanted_.push_back(std::move(file)); }
    // Asks for the next files while those asked for before are on their way.
    void fetch();

private:
    std::size_t ask(std::size_t from);
    std::size_t receive_contents(std::size_t first);
    void bring(const Wanted &wanted, FdRef source, HostFacts facts);
    bool settle(const Wanted &wanted, FdRef directory, const std::string &name, FdRef source, const HostFacts &facts);

    const WritingPlaces &places_;
    FdRef transfer_;
    FdRef channel_;
    Manifest &manifest_;
    LastDirectory &writing_;
    KeptNames &kept_;
    std::vector<Wanted> wanted_;
};

// Compares two regular files from their beginnings; `step` is called every 8 MiB.
bool have_same_bytes(FdRef one, FdRef other, const std::function<void()> &step);

constexpr const char *version_copy = ".pi-agent-version";
constexpr std::size_t version_copy_limit = 256; // bytes

// $XDG_STATE_HOME/.pi-agent-version, as the agent; restored when it is anything else. Left out where the agent has a symlink or a file
// instead of a directory above it.
void copy_version(const AsUser &agent, FdRef home, FdRef staging, const Version &version);

} // namespace pi_agent
