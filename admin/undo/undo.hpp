// What a session of the caller's changed: `pi-agentctl changes`, `diff` and `undo`.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// Of a session by its id or the beginning of that; without one, of the caller's last session. All throw Failure(usage) for root, who has no
// sessions, and NothingToDo where nothing is kept or nothing changed. `paths` count from the working directory.
void run_changes(const std::optional<std::string> &session, bool json, std::ostream &out);

// In git's form. On a terminal with colours, and a screen at a time.
void run_diff(const std::vector<std::string> &paths, const std::optional<std::string> &session, std::ostream &out);

struct UndoOrder {
    std::vector<std::string> paths;
    std::optional<std::string> session;
    bool yes = false;
    bool dry_run = false;
};
// Keeps first what it will change. Throws Failure(busy) while a session lives there, and Failure(system_failure) if it could not take back
// all of its plan.
void run_undo(const UndoOrder &order, std::ostream &out, std::ostream &notes);

// Asks at the terminal about each change, and takes back those that are named so: as run_undo.
void run_review(const std::optional<std::string> &session, std::ostream &out, std::ostream &notes);

} // namespace pi_agent
