// Takes back what a session changed: the plan, and its steps.
#pragma once

#include "common/undo/compare.hpp"

namespace pi_agent {

struct UndoPlan {
    std::vector<TreeChange> steps;     // that are taken back
    std::vector<TreeChange> conflicts; // that somebody changed since, or that may be older: they stay unless they are named
    std::vector<TreeChange> without;   // whose content is not kept
    std::vector<TreeChange> of_git;    // git's own files, which are taken back only where they are named
};

// `named`: paths below the root, each with all below it; without one, everything. "" is the root.
bool names_git(const std::vector<std::string> &named);
bool is_selected(const std::vector<std::string> &named, const TreeChange &change);
UndoPlan plan_undo(const std::vector<TreeChange> &changes, const std::vector<std::string> &named);

// Does it beneath `root`: removes what was created, and puts back what was there. Each file is the old one or the new one at any moment,
// whoever is killed; the same call finishes what another began. Returns what could not be done: a path and why.
std::vector<std::string> take_back(const UndoPlan &plan, const Checkpoint &checkpoint, FdRef root);

} // namespace pi_agent
