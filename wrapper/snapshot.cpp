// Comparing two looks.
#include "wrapper/snapshot.hpp"

namespace pi_agent {

namespace {

bool is_same(const Mark &before, const Mark &after)
{
    return before.identity == after.identity || (before.content && after.content && *before.content == *after.content);
}

bool has_appeared(const Snapshot &before, const std::string &path, const Mark &mark, const timespec &start)
{
    if (mark.appearing == Appearing::is_ordinary) return false;
    if (mark.appearing == Appearing::counts_in_known_directory && !before.program_directories.contains(path.substr(0, path.rfind('/'))))
        return false;
    const bool was_looked_for = before.is_complete || (mark.found_first && before.has_first_places);
    return was_looked_for || is_later(mark.changed, start);
}

} // namespace

bool is_later(const timespec &time, const timespec &than) noexcept
{
    return time.tv_sec != than.tv_sec ? time.tv_sec > than.tv_sec : time.tv_nsec > than.tv_nsec;
}

std::vector<Finding> compare(const Snapshot &before, const Snapshot &after, const timespec &start)
{
    std::vector<Finding> findings;
    std::vector<Finding> others;
    for (const auto &[key, mark] : after.marks) {
        std::vector<Finding> &list = mark.found_first ? findings : others; // the nearest repository is what the user goes on with
        const auto earlier = before.marks.find(key);
        // What the first look found younger than the session's start may be the agent's own.
        const bool was_there = earlier != before.marks.end() && !is_later(earlier->second.changed, start);
        if (!was_there && has_appeared(before, key.first, mark, start))
            list.push_back(Finding{key.first, key.second, true});
        else if (was_there && !is_same(earlier->second, mark))
            list.push_back(Finding{key.first, key.second, false});
    }
    findings.insert(findings.end(), others.begin(), others.end());
    return findings;
}

} // namespace pi_agent
