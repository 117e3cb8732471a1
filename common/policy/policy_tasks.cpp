// The table of tasks, and whose each key is.
#include "common/policy/policy_keys.hpp"

#include "common/base/text.hpp"

namespace pi_agent {

namespace {

constexpr PolicyTask task_table[] = {
#include "common/policy_tasks.inc"
};

bool is_below(std::string_view path, std::string_view top)
{
    return path.substr(0, top.size()) == top && (path.size() == top.size() || path[top.size()] == '.');
}

// How much of the key's path the task names. The task that names most has the key.
std::size_t part_named(const PolicyTask &task, std::string_view path)
{
    std::size_t most = 0;
    for (const auto top : split(task.keys, ' '))
        if (is_below(path, top) && top.size() > most) most = top.size();
    return most;
}

const PolicyTask *task_of(std::string_view path)
{
    const PolicyTask *found = nullptr;
    std::size_t most = 0;
    for (const auto &task : task_table)
        if (const auto part = part_named(task, path); part > most) {
            most = part;
            found = &task;
        }
    return found;
}

} // namespace

std::span<const PolicyTask> policy_tasks() noexcept
{
    return task_table;
}

std::vector<const PolicyKey *> policy_keys_of(const PolicyTask &task)
{
    std::vector<const PolicyKey *> keys;
    for (const auto &key : policy_keys())
        if (key.repeats.empty() && task_of(key.path) == &task) keys.push_back(&key);
    return keys;
}

} // namespace pi_agent
