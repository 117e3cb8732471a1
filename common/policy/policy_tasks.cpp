// What the reference page and the manual say of keys: the table of tasks, forms, and levels.
#include "common/policy/policy_keys.hpp"

#include "common/base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

// The form of a key, and the levels that repeat it.

namespace {

std::string words(std::string_view list)
{
    std::vector<std::string> quoted;
    for (const auto word : split(list, ' '))
        quoted.push_back(fmt::format("`{}`", word));
    return fmt::format("{}", fmt::join(quoted, ", "));
}

} // namespace

std::string levels_text(const PolicyKey &key)
{
    std::vector<std::string> others;
    for (const auto &other : policy_keys())
        if (other.repeats == key.path) others.push_back(fmt::format("`{}`", display_path(other)));
    return others.empty() ? "" : fmt::format("Also {}.", fmt::join(others, " and "));
}

std::string form_text(const PolicyKey &key)
{
    constexpr const char *forms[] = {"the number {1}",
                                     "a mapping",
                                     "a mapping of names",
                                     "a mapping, as JSON",
                                     "`true`, `false`",
                                     "text",
                                     "text",
                                     "a name",
                                     "{0}",
                                     "a list",
                                     "a list, also of mappings",
                                     "{0}, or a list",
                                     "{0}, a list, or a mapping",
                                     "a whole number with {0}",
                                     "a whole number"}; // in the order of ValueForm
    return fmt::format(fmt::runtime(forms[static_cast<std::size_t>(key.form)]), words(key.choices), policy_version);
}

} // namespace pi_agent
