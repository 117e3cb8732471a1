// Facts about this machine: accounts of processes, processors, programs, and Slurm among the ancestors.
#include "runner/root/kernel/host_facts.hpp"

#include "common/base/files.hpp"
#include "common/host/trusted_file.hpp"

#include <filesystem>
#include <sstream>

namespace pi_agent {

namespace {

// A user may give a set-uid program any name, where the kernel lets them link to it, and then root runs under that name in a directory of
// theirs. So the name counts only where none but root gives names.
bool is_slurms(const Ancestor &ancestor)
{
    if (!ancestor.is_roots) return false;
    const std::string program = read_link(ancestor.directory, "exe");
    if (!program.substr(program.rfind('/') + 1).starts_with(job_process)) return false;
    try {
        const UniqueFd trusted = open_trusted(program, O_PATH, "Slurm's program for a job");
        struct stat runs {};
        return fstatat(ancestor.directory.get(), "exe", &runs, 0) == 0 &&
               is_same_file(runs, examine(trusted, "examining Slurm's program for a job"));
    } catch (const Failure &) { // others can change it, or it is gone: it proves nothing
        return false;
    }
}

} // namespace

UniqueFd find_job(const AsRoot & /*root*/)
{
    UniqueFd job;
    const bool is_there = has_ancestor([&](const Ancestor &ancestor) {
        job = open_process(ancestor.number);
        return job && is_slurms(ancestor); // asked of its directory, so it lived, and the number was its own, when `job` was opened
    });
    return is_there ? std::move(job) : UniqueFd();
}

// Facts about this machine: which account a process has, processors, and which programs exist.

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

// At least `count` words, each of them one of `allowed`.
bool are_among(const std::optional<std::vector<std::string>> &words, std::size_t count, const std::vector<std::uint64_t> &allowed, int base)
{
    return words && words->size() >= count && std::all_of(words->begin(), words->end(), [&](const std::string &word) {
               const auto number = to_number<std::uint64_t>(word, base);
               return number && std::find(allowed.begin(), allowed.end(), *number) != allowed.end();
           });
}

bool is_in_one(const std::vector<std::string> &directories, const std::string &name)
{
    return std::any_of(directories.begin(), directories.end(),
                       [&](const std::string &directory) { return access((directory + "/" + name).c_str(), X_OK) == 0; });
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

bool has_name(const std::vector<std::string> &directories, const std::string &name)
{
    return std::any_of(directories.begin(), directories.end(), [&](const std::string &directory) {
        struct stat facts {};
        return lstat((directory + "/" + name).c_str(), &facts) == 0;
    });
}

std::string host_name()
{
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) throw_errno("asking for the host's name");
    return name.data();
}

std::vector<std::string> missing_search_tools(const std::vector<std::string> &directories)
{
    std::vector<std::string> missing;
    if (!is_in_one(directories, "fd") && !is_in_one(directories, "fdfind")) missing.emplace_back("fd");
    if (!is_in_one(directories, "rg")) missing.emplace_back("rg");
    return missing;
}

bool can_be_run_by_all(const std::string &path)
{
    std::error_code problem;
    const std::filesystem::path real = std::filesystem::canonical(path, problem);
    struct stat facts {};
    if (problem || stat(real.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || (facts.st_mode & S_IXOTH) == 0) return false;
    for (auto directory = real.parent_path(); directory.has_relative_path(); directory = directory.parent_path())
        if (stat(directory.c_str(), &facts) == 0 && (facts.st_mode & S_IXOTH) == 0) return false;
    return true;
}

std::optional<std::string> open_program_notice(const Policy &policy)
{
    if (!policy.wrapper.hide_direct_binary || !can_be_run_by_all(policy.agent.binary)) return std::nullopt;
    return "everybody on this host can run " + policy.agent.binary +
           " without this wrapper: was it upgraded? the administrator hides it again with: sudo pi-agentctl apply";
}

} // namespace pi_agent
