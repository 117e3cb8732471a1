// The kernel's own account of a unit's limits.
#include "runner/root/kernel/limits_check.hpp"

#include "common/base/error.hpp"
#include "common/policy/policy_limits.hpp"
#include "runner/root/kernel/limit_controllers.hpp"

#include <charconv>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace pi_agent {

namespace {

// The first words of a file of a control group; empty when it is not there.
std::vector<std::string> words_in(const std::string &path)
{
    std::ifstream file(path);
    std::vector<std::string> words;
    for (std::string word; file >> word;)
        words.push_back(word);
    return words;
}

// "max" and -1 are no limit, and neither is what cannot be read.
std::optional<std::uint64_t> number(const std::vector<std::string> &words, std::size_t index)
{
    if (index >= words.size()) return std::nullopt;
    const std::string &word = words[index];
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) return std::nullopt;
    return value;
}

// What is in force in a group, held against the policy.
class Check {
public:
    explicit Check(const char *cause) : cause_(cause) {}
    void require_at_most(const char *key, const SaidLimit &said, const std::string &controller, std::optional<std::uint64_t> in_force,
                         std::uint64_t allowed) const
    {
        if (in_force && *in_force <= allowed) return;
        throw Failure(ExitStatus::unavailable, std::string("this host does not enforce the policy's limits.") + key + ": " + said.text +
                                                   " (" + to_string(said.where) +
                                                   "): the session's control group is without it; the controller " + controller + ": " +
                                                   cause_ + " or leave the key out of the policy");
    }

private:
    const char *cause_;
};

// Percent of one processor, rounded up.
std::optional<std::uint64_t> share_of_cpu(std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period)
{
    if (!quota || !period || *period == 0) return std::nullopt;
    return (*quota * 100 + *period - 1) / *period;
}

std::optional<std::uint64_t> cpu_in(const ControlGroup &group)
{
    const std::string directory = directory_of(group, "cpu");
    if (!group.is_unified)
        return share_of_cpu(number(words_in(directory + "/cpu.cfs_quota_us"), 0), number(words_in(directory + "/cpu.cfs_period_us"), 0));
    const std::vector<std::string> words = words_in(directory + "/cpu.max");
    return share_of_cpu(number(words, 0), number(words, 1));
}

} // namespace

void require_limits_in(const ControlGroup &group, const LimitsPolicy &limits, const char *cause)
{
    const Check check(cause);
    if (const auto &said = said_memory(limits)) {
        const std::string file = group.is_unified ? "/memory.max" : "/memory.limit_in_bytes";
        // The kernel rounds to pages, systemd a share to its own count of the host's memory.
        const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
        const std::uint64_t allowed = (limits.memory ? said->amount : host_memory() / 100 * said->amount + 100) + page;
        check.require_at_most("memory", *said, "memory", number(words_in(directory_of(group, "memory") + file), 0), allowed);
        // A kernel without accounts of swap has no such file; version 1 has no limit of swap alone (docs/limits.md).
        const std::vector<std::string> swap = words_in(directory_of(group, "memory") + "/memory.swap.max");
        if (!swap.empty()) check.require_at_most("memory", *said, "memory", number(swap, 0), 0);
    }
    if (limits.tasks)
        check.require_at_most("tasks", *limits.tasks, "pids", number(words_in(directory_of(group, "pids") + "/pids.max"), 0),
                              limits.tasks->amount);
    if (limits.cpu) check.require_at_most("cpu", *limits.cpu, "cpu", cpu_in(group), limits.cpu->amount);
}

} // namespace pi_agent
