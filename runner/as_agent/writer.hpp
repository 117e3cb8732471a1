// The writing half of the config sync: runs as the agent, creates everything beneath the agent's home, follows no link.
#pragma once

#include "runner/as_agent/manifest.hpp"
#include "runner/wire/answer.hpp"

namespace pi_agent {

// Descriptors that root opened; all borrowed.
struct WritingPlaces {
    FdRef home;
    FdRef staging;  // a directory of the agent's account on the home's file system, out of the agent's sight: new files are made there
    FdRef manifest; // O_RDWR
    FdRef spare_manifest;  // O_RDWR
    FdRef locked_settings; // gets a copy of the merged settings.json; -1: none wanted
};

// A document is merged by key instead of being copied.
struct DocumentRule {
    std::string managed = "{}"; // JSON text of an object
    bool is_alone = false;      // neither the host's nor the agent's counts
};

struct WritingPlan {
    ConfigClasses classes;
    std::map<std::string, DocumentRule> documents; // by name, as in ReadingPlan
    std::set<std::string> managed_providers;       // with keys in the managed environment
    std::set<std::string> held_providers = {};     // their keys are outside; a login of the user's or the agent's is left as it is
    std::string held_models = "{}";                // over the managed models.json: an entry there would lead pi elsewhere
    FdRef defaults = FdRef(-1);                    // what the home gets first (seed_defaults); -1: nothing
    std::string project_alias = {};                // a link to the project is made in the home (runner/as_agent/home.hpp); empty: none
    std::string project_path = {};                 // where it leads
    std::function<bool(const std::string &path)> is_there = {}; // a path of the host is there in the session; none: nobody asks
};

// With the held models in the managed ones.
WritingPlan with_held_models(WritingPlan plan);

constexpr const char *answer_rewritten = "rewritten"; // at most once: root must now replace the manifest by the spare one

// Furnishes the home, receives from the reader over `transfer` and brings the home in line: deletes what the host deleted, and replaces
// each file atomically. It changes nothing before it found every document valid. Sends notices and `answer_rewritten` over `channel`, then
// one empty answer.
void write_config(const AsUser &agent, const WritingPlaces &places, const WritingPlan &plan, FdRef transfer, FdRef channel);

// --- New files for the agent's home, made out of its sight: each takes its place in one step.
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

// Compares two regular files from their beginnings; `step` is called every 8 MiB.
bool have_same_bytes(FdRef one, FdRef other, const std::function<void()> &step);

constexpr const char *version_copy = ".pi-agent-version";
constexpr std::size_t version_copy_limit = 256; // bytes

// $XDG_STATE_HOME/.pi-agent-version, as the agent; restored when it is anything else. Left out where the agent has a symlink or a file
// instead of a directory above it.
void copy_version(const AsUser &agent, FdRef home, FdRef staging, const Version &version);

// --- The agent's own lock on a file that it rewrites: a directory FILE.lock beside it, kept fresh by its owner, free for all when stale.

// True when `name`.lock is there and fresh (pi-contract: stale after ten seconds, thirty for auth.json).
bool is_locked_by_agent(FdRef directory, const std::string &name);

// Holds the lock as long as it lives.
class AgentLock {
public:
    // Waits for another holder, calling `send_progress(channel)`; a stale lock is taken over. Throws Failure(limit) when a holder keeps it
    // fresh for longer than any does that is not hung.
    AgentLock(FdRef directory, const std::string &name, FdRef channel);
    AgentLock(const AgentLock &) = delete;
    AgentLock &operator=(const AgentLock &) = delete;
    ~AgentLock();

private:
    FdRef directory_;
    std::string lock_name_;
};

// --- The documents of one sync: read from the host, merged with the agent's, written under the agent's own lock.

// One document, as the agent's home has it.
struct InsideDocument {
    std::optional<nlohmann::json> document;
    bool is_broken = false;
};

class DocumentWriter {
public:
    DocumentWriter(const WritingPlan &plan, FdRef locked_settings, FdRef channel);

    // Takes the host's version, from the beginning of `file` (none: the host does not have the document). The agent on the host rewrites
    // its files in place, so an invalid one is read again for a while. Throws Failure(configuration) with "place:line:column" when it stays
    // invalid. Where agents can have made it invalid, it is left out, and a message says so.
    void take_host(const SyncMessage &document, FdRef file);

    // The part of a path in the agent's home that may be a document's name; empty for any other path.
    static std::string name_of(const std::string &path);
    // Whether a document of this name is merged. One that neither the host has nor the policy sets is a file like any other: the agent's
    // own, or what the host had before.
    [[nodiscard]] bool merges(const std::string &name) const;

    // Writes all documents that are merged into `directory`; `staging` as for Replacement. Call it only after every take_host.
    void write(FdRef directory, FdRef staging, Manifest &manifest);

    // The packages that the settings name; known after write().
    [[nodiscard]] const std::vector<AgentPackage> &packages() const noexcept { return packages_; }

private:
    void write_one(const std::string &name, FdRef directory, FdRef staging, Manifest &manifest);
    struct Merged {
        nlohmann::json chosen; // of host and agent
        nlohmann::json document;
    };
    [[nodiscard]] DocumentVersions versions_before(const std::string &name, const DocumentBase *base) const;
    [[nodiscard]] Merged merge(const std::string &name, const DocumentVersions &versions) const;
    [[nodiscard]] Merged merge_with(const InsideDocument &inside, const std::string &name, DocumentVersions versions) const;
    void put(const std::string &name, const std::string &text, FdRef directory, FdRef staging) const;
    void write_locked(const nlohmann::json &merged, DocumentVersions without_agents);
    void name_paths_that_leave(const nlohmann::json &settings);
    void leave_places_out(nlohmann::json &settings, const std::string &place) const;

    const WritingPlan &plan_;
    FdRef locked_settings_;
    FdRef channel_;
    std::map<std::string, nlohmann::json> hosts_; // of those that the host has
    std::map<std::string, std::string> places_;
    std::set<std::string> managed_providers_; // whose keys come from the policy
    std::set<std::string> given_providers_;   // of these, those whose keys the session gets: they beat a login, too
    std::vector<AgentPackage> packages_;
};

} // namespace pi_agent
