// The policy's keys by what an administrator wants to do, each task with one example: the order of the reference page and the manual.
#pragma once

#include "common/policy/policy_keys.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace pi_agent {

struct PolicyTask {
    std::string_view title;   // of a section: "Limits"
    std::string_view keys;    // paths, separated by spaces; each includes everything below it that no other task names
    std::string_view example; // lines of YAML, a policy together with `version: 1` and, where it names no users, these
};

std::span<const PolicyTask> policy_tasks() noexcept;

// The keys of a task, in the order of the table. Every key has one task, except those that repeat one for a user or root: they are told
// with it (policy_keys_repeating).
std::vector<const PolicyKey *> policy_keys_of(const PolicyTask &task);

} // namespace pi_agent
