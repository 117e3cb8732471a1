// What the kernel says of a process and of this machine: accounts and processors.
#include "runner/root/kernel/process_account.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

namespace pi_agent {

namespace {

// The words of the one line with this name; none where there is no such line, or more than one.
std::optional<std::vector<std::string>> words_of(const std::string &status, const std::string &name)
{
    std::optional<std::vector<std::string>> found;
    std::istringstream lines(status);
    for (std::string line; std::getline(lines, line);) {
        if (line.compare(0, name.size() + 1, name + ":") != 0) continue;
        if (found) return std::nullopt;
        std::istringstream words(line.substr(name.size() + 1));
        found.emplace();
        for (std::string word; words >> word;)
            found->push_back(word);
    }
    return found;
}

std::string joined(const std::optional<std::vector<std::string>> &words)
{
    std::string text;
    for (const auto &word : words.value_or(std::vector<std::string>{"?"}))
        text += (text.empty() ? "" : " ") + word;
    return escape_for_display(text);
}

std::optional<std::uint64_t> number_of(const std::string &word, int base)
{
    std::uint64_t number = 0;
    const char *end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, number, base);
    return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

// At least `count` words, each of them one of `allowed`.
bool are_among(const std::optional<std::vector<std::string>> &words, std::size_t count, const std::vector<std::uint64_t> &allowed, int base)
{
    return words && words->size() >= count && std::all_of(words->begin(), words->end(), [&](const std::string &word) {
               const auto number = number_of(word, base);
               return number && std::find(allowed.begin(), allowed.end(), *number) != allowed.end();
           });
}

} // namespace

ExpectedAccount account_of(const SandboxPlan &plan)
{
    ExpectedAccount expected{plan.agent, plan.agent_group, plan.account_groups};
    for (const Gid group : plan.groups)
        expected.groups.push_back(group.value());
    return expected;
}

std::optional<std::string> account_problem(const std::string &status, const ExpectedAccount &expected)
{
    constexpr std::size_t kinds = 4; // real, effective, saved, of the file system
    std::vector<std::uint64_t> groups(expected.groups.begin(), expected.groups.end());
    groups.push_back(expected.group.value());
    const auto wrong = [&](const char *name) { return std::string(name) + ": " + joined(words_of(status, name)); };
    if (!are_among(words_of(status, "Uid"), kinds, {expected.user.value()}, 10)) return wrong("Uid");
    if (!are_among(words_of(status, "Gid"), kinds, {expected.group.value()}, 10)) return wrong("Gid");
    if (!are_among(words_of(status, "Groups"), 0, groups, 10)) return wrong("Groups");
    if (expected.no_new_privileges && !are_among(words_of(status, "NoNewPrivs"), 1, {1}, 10)) return wrong("NoNewPrivs");
    if (!expected.no_capabilities) return std::nullopt;
    for (const char *set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
        if (!are_among(words_of(status, set), 1, {0}, 16)) return wrong(set);
    return std::nullopt;
}

std::vector<cpu_set_t> processors_of(pid_t process, const AskForProcessors &ask)
{
    constexpr std::size_t most = 256; // sets, for 262,144 processors: thirty times what Linux can be built for
    for (std::size_t count = 1; count <= most; count *= 2) {
        std::vector<cpu_set_t> sets(count);
        if (ask(process, count * sizeof(cpu_set_t), sets.data()) == 0) return sets;
        if (errno != EINVAL) break;
    }
    throw_errno("reading the processors of process " + std::to_string(process));
}

} // namespace pi_agent
