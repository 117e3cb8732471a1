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

struct DiffOrder {
    std::vector<std::string> paths;
    std::optional<std::string> session;
    std::optional<std::string> number; // in the order of `changes --json`, from 0: of that change alone, without bytes that steer terminals
};
// In git's form. On a terminal with colours, and a screen at a time.
void run_diff(const DiffOrder &order, std::ostream &out);

struct UndoOrder {
    std::vector<std::string> paths;
    std::optional<std::string> session;
    bool yes = false;
    bool dry_run = false;
};
// Keeps first what it will change. Throws Failure(busy) while a session lives there, and Failure(system_failure) if it could not take back
// all of its plan.
void run_undo(const UndoOrder &order, std::ostream &out, std::ostream &notes);

// Lists the changes at the terminal, each with its difference beside it (fzf), and takes back those that are marked: as run_undo. Throws
// Failure(configuration) where fzf is not installed.
void run_review(const std::optional<std::string> &session, std::ostream &out, std::ostream &notes);

} // namespace pi_agent
