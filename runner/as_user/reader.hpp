// The reading half of the config sync: runs as the user, and lists and opens what the user's config names.
#pragma once

#include "common/as_user/user_paths.hpp"
#include "common/host/identity.hpp"
#include "runner/as_agent/sync_messages.hpp"

namespace pi_agent {

// Which symlinks of the user's config stay symlinks in the agent's home: those that stay in the tree that is brought there.

// A directory that is brought in as it is: the top of a source, or the target of a symlink that is followed.
struct ListedTree {
    UserPlacePtr top;
    std::string path;               // where the agent has it, relative to the source; "" for the source's own top
    std::vector<std::string> names; // how an absolute symlink may begin to mean this tree
};

// Whether the agent gets the target of a symlink as the user has it; `path` is relative to the tree.
using MayLeadTo = std::function<bool(const std::string &path)>;

// For a process of the user's. The text that the symlink at `path` of the tree gets in the agent's home: `target` itself, or for an
// absolute one the relative way. None where it leads out of the tree at any step, to nothing, or to a path that is not allowed. Only looks,
// beneath the top, and lets the kernel follow no symlink: the text of a symlink decides where the next look goes, and never leaves the
// tree.
std::optional<std::string> find_kept_link(const ListedTree &tree, const std::string &path, const std::string &target,
                                          const MayLeadTo &may_lead_to);

// The reading half of the config sync: runs as the user, opens everything that the user's config names, and follows symlinks with the
// user's rights only. It follows none out of a directory that agents write in.

// A directory of the user that is brought to a place in the agent's home.
struct ConfigSource {
    std::string directory; // absolute; a missing one counts as empty
    std::string inside;    // relative to the agent's home
    bool is_config;        // the config directory, with documents and classes; else all of it is mirrored
};

struct ReadingPlan {
    std::vector<ConfigSource> sources;
    ConfigClasses classes;
    std::vector<std::string> documents; // of the config directory: sent first, and not listed
    AgentPlaces agents;                 // content of these places leads nowhere else
    std::string sessions_outside = {};  // of the config directory: named once, where it holds sessions; empty: none stay outside
};

// Tells the writer over `transfer` (both ways) what there is and hands it what it asks for; sends the names of what is skipped, each as one
// answer, over `channel`; an empty answer means done. Throws Failure(configuration) when a source is not a readable directory, or a
// document not a readable file.
void read_config(const AsUser &user, const ReadingPlan &plan, FdRef transfer, FdRef channel);

// Lists what the user's config holds, for the writer: entry by entry, with the user's rights.

constexpr std::uint64_t config_file_limit = std::uint64_t{256} << 20U;

// Sends to the writer, which ends first when something goes wrong with its writing.
void send_to_writer(FdRef transfer, const SyncMessage &message, const std::vector<int> &fds = {});
// Call it when the writer has ended: it told the runner why, and the runner ends us.
[[noreturn]] void wait_for_the_end();

std::string shown_of(const ConfigSource &source, const std::string &path);

// Names what is left out, up to a number.
class SkippedNames {
public:
    explicit SkippedNames(FdRef channel) : channel_(channel) {}
    void name(const std::string &shown, const std::string &reason);
    void tell_rest() const;

private:
    FdRef channel_;
    std::size_t count_ = 0;
};

// How much the reader of the config has listed, and where most of it comes from.

constexpr std::size_t entry_limit = 200'000;
constexpr std::uint64_t total_limit = std::uint64_t{2} << 30U;

class ListedAmount {
public:
    // `path` is beneath the directory that is listed. False when this is one too many.
    [[nodiscard]] bool take_entry(const std::string &path);
    [[nodiscard]] bool take_bytes(std::uint64_t count);
    [[nodiscard]] std::size_t entries() const noexcept { return entries_; }
    // The first component that most of the paths share.
    [[nodiscard]] std::string largest_part() const;

private:
    std::size_t entries_ = 0;
    std::uint64_t bytes_ = 0;
    std::map<std::string, std::size_t> parts_;
};

// A file of the listing, opened when the writer asks for it.
struct ListedFile {
    std::size_t source;
    std::string path; // relative to the source
};

class Listing {
public:
    Listing(const ReadingPlan &plan, const UserPaths &paths, FdRef transfer, FdRef channel, SkippedNames &skipped)
        : plan_(plan), paths_(paths), transfer_(transfer), channel_(channel), skipped_(skipped)
    {
    }

    // Lists one source, whose top is open.
    void list(std::size_t number, const UserPlacePtr &top);
    void end();

    [[nodiscard]] const std::vector<ListedFile> &files() const noexcept { return files_; }

private:
    [[nodiscard]] const ConfigSource &source() const { return plan_.sources[number_]; }
    [[nodiscard]] std::string shown(const std::string &path) const;
    [[nodiscard]] bool is_document(const std::string &path) const;
    [[nodiscard]] bool is_listed(const std::string &path) const;
    [[nodiscard]] ListedTree tree_at(const UserPlacePtr &top, const std::string &path) const;
    [[nodiscard]] bool may_lead_to(const std::string &path, FileClass own) const;

    void enter(const UserPlacePtr &place, const std::string &path);
    void visit(const UserPlacePtr &parent, const std::string &name, const std::string &path);
    bool keep_link(const UserPlacePtr &parent, const std::string &name, const std::string &path, const struct stat &facts);
    void take(const std::string &path, const struct stat &facts, bool listed, bool by_agents = false);
    ListedAmount &amount_of(const std::string &path, const std::string &whole, bool by_agents);
    void too_many(bool by_agents, const std::string &path);
    [[nodiscard]] std::string whole_of(const std::string &path) const;
    void leave_out(const std::string &whole);
    void add(EntryKind kind, const std::string &path, const HostFacts &facts, const std::string &target = {});
    [[noreturn]] void refuse_size(const std::string &what) const;
    void flush();
    void skip(const std::string &path, const std::string &reason, bool keep = true);

    const ReadingPlan &plan_;
    const UserPaths &paths_;
    FdRef transfer_;
    FdRef channel_;
    SkippedNames &skipped_;
    std::size_t number_ = 0; // of the source
    ListedTree tree_;
    std::vector<const struct stat *> above_;
    std::vector<ListedFile> files_;
    std::vector<ListedEntry> listing_;
    std::size_t pending_ = 0;
    ListedAmount from_user_;
    ListedAmount from_agents_;                     // what they can have written
    std::map<std::string, ListedAmount> for_once_; // of class `once`, whoever wrote it, by the first name of its path
    std::set<std::string> left_out_;               // of that class
};

} // namespace pi_agent
