// The writing half of the config sync, its documents and its log: as the agent, beneath the agent's home, through no link.
#pragma once

#include "common/host/beneath.hpp"
#include "common/host/identity.hpp"
#include "runner/as_agent/sync_messages.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

// --- The documents that a sync writes: what it does about each, how JSON is merged, and the packages that they name.

// The packages that an agent's settings name, and where its home would have them.

// The source that an entry of a settings' list of resources names: the entry itself, or its "source". None for anything else.
std::optional<std::string> source_of_resource(const nlohmann::json &entry);

struct AgentPackage {
    std::string source;              // as the settings have it
    std::vector<std::string> places; // relative to the agent's home: installed when one is there
};

// Packages from npm and git; any other source, or one without a known place, is left out.
std::vector<AgentPackage> packages_of(const nlohmann::json &settings);

// --- Parses a user's JSON with bounds, and merges managed values over it.
enum class JsonSyntax { strict, with_comments }; // comments and trailing commas, as pi allows in models.json

// JSON whose top level is an object, at most 128 levels deep. Throws Failure(configuration) with "name:line:column".
nlohmann::json parse_json_object(const std::string &text, const std::string &name, JsonSyntax syntax = JsonSyntax::strict);

// Objects merge recursively; arrays, scalars and null are replaced by the managed value.
nlohmann::json merge_managed(nlohmann::json host, const nlohmann::json &managed);

// --- Numbers of JSON documents that no C++ number holds as they are written (more than 18 digits, fractions, exponents, -0): they pass
// byte for byte. In a document they are texts with a mark that nobody writes by accident.

// JSON in which these numbers are marked texts, and where that added bytes: after which byte, and how many.
struct MarkedNumbers {
    std::string text;
    std::vector<std::pair<std::size_t, std::size_t>> added;
    // Translates a place in `text` into one in the original; both count from 1.
    [[nodiscard]] std::size_t original(std::size_t byte) const;
};

MarkedNumbers mark_numbers(const std::string &text);

// A document as text again, with its numbers as they were written. `indent` as for nlohmann's dump.
std::string dump_with_numbers(const nlohmann::json &document, int indent = -1);

// Whether two values are equal, or are the same number written in two ways.
bool are_same_values(const nlohmann::json &one, const nlohmann::json &other);

// --- How the host's, the agent's and the managed version of a JSON document become one. Pure: no file is touched here.

// The versions of one document, each an object. `base_*` come from the last sync, none before the first.
struct DocumentVersions {
    nlohmann::json host = nlohmann::json::object();
    std::optional<nlohmann::json> inside, base_host;
    std::optional<nlohmann::json> base_chosen;  // what was chosen of both, before the managed values
    std::optional<nlohmann::json> base_written; // what the last sync left inside
    void forget_base() { base_host = base_chosen = base_written = std::nullopt; }
};

// Merges settings.json and, where they are managed, models.json, keybindings.json and mcp.json, before their managed values. Class seed,
// and once: for each key the host's value if the host changed it, else the one inside. agent: what is inside. never: what is inside,
// without what the host had. mirror: the host's. In any class the agent's own keys of settings.json stay: lastChangelogVersion, the larger
// of both, trackingId and deviceId.
nlohmann::json merge_document(const std::string &name, FileClass file_class, const DocumentVersions &versions);

// Merges auth.json and mcp-auth.json, entry by entry. The host decides about an api_key. The agent keeps an OAuth entry once it has one
// (each refresh rotates the token, and the host's copy goes stale), until a new login changes the host's entry. When the host no longer has
// an entry, it goes inside too, unless it was changed there. With mirror the host decides about all entries. With agent the entries inside
// stay. With never an entry inside stays only where it differs from what the host had. Entries of `managed_providers` go. Every entry of
// mcp-auth.json counts as OAuth.
nlohmann::json merge_credentials(const std::string &name, FileClass file_class, const DocumentVersions &versions,
                                 const std::set<std::string> &managed_providers);

// auth.json without keys of these providers: of each, nothing but a login (`oauth`) is left.
nlohmann::json without_keys_of(nlohmann::json credentials, const std::set<std::string> &held_providers);

// models.json without the keys of managed providers, which would beat the managed ones.
nlohmann::json without_keys(nlohmann::json models, const std::set<std::string> &managed_providers);
// The providers for which a managed models.json has a key.
std::set<std::string> providers_with_keys(const nlohmann::json &models);

// Resource paths of a settings.json that leave the config directory: inside they would mean another place. "extensions: ~/x"
std::vector<std::string> paths_that_leave(const nlohmann::json &settings);

// --- Decides about one path: the outcome table of the config sync (docs/concepts/config-sync.md), without any file.

// The host's file, compared with what the manifest recorded at the last sync.
enum class HostState { absent, unchanged, changed };
// The agent's file, compared with what the last sync left there.
enum class InsideState { absent, as_synced, other };

enum class SyncAction {
    leave,  // nothing to do
    copy,   // the host's version replaces it
    adopt,  // what is inside stays; the host's is remembered, so that a change of it is seen
    remove, // remove it, and take it out of the manifest
    forget, // stays inside and is the agent's from now on
};

// With class `once`, `inside` is `other` for every part of a tree that the agent changed (ConfigClasses::whole_of). `known`: the manifest
// knows this path; otherwise `host` is absent or changed, and `inside` absent or other.
SyncAction decide_file(FileClass file_class, bool known, HostState host, InsideState inside) noexcept;

// --- What the last syncs put into an agent's home, in an append-only log that survives being cut off anywhere; and what is there now.

// What stat says about a file inside. The agent can set back a size and a time of modification, but not the time of change.
struct InsideFacts {
    std::uint64_t inode = 0; // 0: not a copy that the sync made
    std::uint64_t size = 0;
    std::int64_t changed = 0;
    friend bool operator==(const InsideFacts &, const InsideFacts &) = default;

    static void fields(auto &archive, auto &self) { archive(self.inode, self.size, self.changed); }
};

InsideFacts inside_facts(const struct stat &facts) noexcept;

struct ManifestEntry {
    bool is_directory = false;
    HostFacts host;     // of the file that was copied; all 0 while a copy is under way
    InsideFacts inside; // of the copy
    std::int64_t recorded = 0;
    // False when either side was written so shortly before that a later write may have the same times: compare the bytes once.
    [[nodiscard]] bool is_settled() const noexcept;
    bool was_seen = false; // in this sync, not stored
    bool is_link = false;  // a symlink that the user's config has, recorded instead of its target
};

// A document that is merged by key: what the host had, what was chosen of host and agent, and what was written, as JSON text.
struct DocumentBase {
    std::string host, chosen, written;
    friend bool operator==(const DocumentBase &, const DocumentBase &) = default;
};

// Root owns the files; only the writer reads and writes them, through descriptors that it was given.
class Manifest {
public:
    // Reads `log`, and cuts off what a sync that was killed left half written. `spare` takes a rewritten log (rewrite()). Both O_RDWR.
    Manifest(FdRef log, FdRef spare);
    Manifest(const Manifest &) = delete;
    Manifest &operator=(const Manifest &) = delete;
    ~Manifest() = default;

    using Entries = std::unordered_map<std::string, ManifestEntry>;
    [[nodiscard]] Entries &entries() noexcept { return entries_; }
    [[nodiscard]] ManifestEntry *find(const std::string &path);
    [[nodiscard]] const DocumentBase *document(const std::string &name) const;

    // Call it before making a path that the log does not know: if the sync is killed then, the next one does not take the leftover for the
    // agent's. On disk after flush().
    void intend(const std::string &path, bool is_directory, bool is_link = false);
    void set(const std::string &path, ManifestEntry entry);
    void forget(const std::string &path);
    void set_document(const std::string &name, const DocumentBase &base);

    void flush();
    // Writes all live entries into `spare` when the log is far longer than they are, and goes on there. True when it did: root then puts it
    // in place.
    bool rewrite_if_long();

private:
    bool take(std::string_view record);
    void append(const std::string &record);
    bool insert(const std::string &path, const ManifestEntry &entry); // true when it is new
    void erase(const std::string &path);

    FdRef log_;
    FdRef spare_;
    Entries entries_;
    // In the order in which they were recorded, which is about the order of a listing: a path is most often the one after the last found.
    std::vector<Entries::value_type *> order_; // emptied when an entry goes
    std::size_t next_ = 0;
    std::unordered_map<std::string, DocumentBase> documents_;
    std::string pending_;
    std::size_t stale_bytes_ = 0; // of records that a later one replaced, estimated
    std::size_t log_bytes_ = 0;
};

std::int64_t wall_clock_nanoseconds() noexcept;

// Has all of an agent's home join a project of quotas (join_tree). A file that the sync made and the agent has not changed is still one.
// `logs`: of the manifest, and the spare one.
void join_home(const AsUser &agent, FdRef home, std::pair<FdRef, FdRef> logs, std::uint32_t project, FdRef channel);

// Opens directories of the agent's home. Paths come directory by directory, so it keeps the last one open.
class LastDirectory {
public:
    explicit LastDirectory(FdRef top) : top_(top) {}

    // Opens a directory only to look. None, with errno, when it does not exist or a symlink is on the way.
    [[nodiscard]] FdRef look(const std::string &path);
    // Opens it to remove what is in it; none in the same cases.
    [[nodiscard]] FdRef find(const std::string &path) { return open(path, find_own_directory_beneath); }
    // Makes it.
    [[nodiscard]] FdRef make(const std::string &path);
    // What is at `path`; only looks. `known`: what the manifest has of it, none when it has nothing.
    [[nodiscard]] InsideState state(const std::string &path, const ManifestEntry *known);
    // Call it after something was removed.
    void forget() noexcept { known_ = false; }

private:
    FdRef open(const std::string &path, UniqueFd (*opened)(FdRef top, const std::string &path));

    FdRef top_;
    std::string path_;
    UniqueFd fd_;
    int problem_ = 0;
    bool known_ = false;
};

// --- Trees that are brought in once (class `once`): the user's as long as the agent changes nothing in one, then the agent's, as a whole.

// An entry of the listing; `number` of a file.
struct ListedOnce {
    ListedEntry entry;
    std::uint64_t number = 0;
    bool known = false;
    HostState host = {};
    InsideState inside = {};
};

// Paths are relative to the agent's home. Only looks.
class OnceTrees {
public:
    OnceTrees(const ConfigClasses &classes, LastDirectory &inside) : classes_(classes), inside_(inside) {}

    void take(const ListedEntry &entry, std::uint64_t number, const ManifestEntry *known);
    // Call it when all entries are taken. Finds out what the agent changed. `unreadable`: what could not be listed completely.
    void judge(Manifest &manifest, const std::vector<std::string> &unreadable);

    [[nodiscard]] const std::vector<ListedOnce> &entries() const noexcept { return entries_; }
    // The state that counts for one of these, after judge(): when the agent changed a part, all of it counts as changed.
    [[nodiscard]] InsideState state_of(const std::string &path, InsideState itself) const;
    // The trees of which the user has something new that stays outside.
    [[nodiscard]] std::vector<std::string> left_behind() const;

private:
    [[nodiscard]] std::string whole_of(const std::string &path) const;

    const ConfigClasses &classes_;
    LastDirectory &inside_;
    std::vector<ListedOnce> entries_;
    std::set<std::string> changed_; // wholes
};

// The path within the config directory; empty for a path elsewhere, and for that directory itself.
std::string_view path_in_config(std::string_view path) noexcept;

// --- Writing.

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
