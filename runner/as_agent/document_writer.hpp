// The documents of one sync: read from the host, merged with the agent's, written under the agent's own lock.
#pragma once

#include "runner/as_agent/manifest.hpp"
#include "runner/as_agent/writer.hpp"
#include "runner/wire/answer.hpp"

namespace pi_agent {

// The agent's own lock on a file that it rewrites: a directory FILE.lock beside it, kept fresh by its owner, free for all when stale.

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

// The documents of one sync: read from the host, merged with the agent's, written under the agent's own lock.

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
