// The agent's own lock on a file that it rewrites: a directory FILE.lock beside it, kept fresh by its owner, free for all when stale.
#pragma once

#include "runner/wire/answer.hpp"

namespace pi_agent {

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

} // namespace pi_agent
