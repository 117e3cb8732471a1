// The policy held against the host: each thing for itself, so that everything that is wrong is told at once.
#include "admin/diagnose/faults.hpp"

#include "admin/diagnose/explain.hpp"
#include "admin/host/accounts.hpp"
#include "admin/host/agent_binary.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/decide/decision.hpp"
#include "common/host/account.hpp"
#include "common/host/remedy.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_load.hpp"
#include "common/policy/policy_sources.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/errand/user_files.hpp"
#include "runner/root/view/root_tree.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

void check_roots(const UserEntry &entry, const Account &user, const Observer &observer, Problems &problems, Unverified &unverified)
{
    const auto findings = observer.resolve_roots(entry.roots, user);
    for (std::size_t index = 0; index < findings.size(); ++index) {
        const auto key = root_key(entry, entry.roots[index]);
        if (problems.has(key)) continue; // told already
        if (findings[index].kind == Finding::Kind::unusable) {
            problems.add(entry.roots[index].where, key, findings[index].text, "");
        } else if (findings[index].kind == Finding::Kind::unknown) {
            unverified.push_back(fmt::format("{} ({}): {}", key, entry.roots[index].text, findings[index].text));
        }
    }
}

void check_entry(const Policy &policy, const UserEntry &entry, const Observer &observer, Problems &problems, Unverified &unverified)
{
    const auto key = entry_key(entry);
    if (!is_plain_name(entry.name)) return; // told already
    if (entry.is_group) {
        const auto group = find_group(entry.name);
        if (!group)
            problems.add(entry.where, key, "there is no group " + quote(entry.name) + " on this host", "create it, or remove the entry");
        else if (is_privileged_group(*group))
            problems.add(entry.where, key,
                         quote(entry.name) + " is a group that opens the host (root, sudo, docker, ...), and no start is granted by it",
                         "name users, or another group");
        check_named_files(policy, entry, std::nullopt, observer, problems, unverified);
        unverified.push_back(key + ": the roots of a group are verified for each member when that member starts pi");
        return;
    }
    const auto user = find_account(entry.name);
    if (!user) {
        problems.add(entry.where, key, "there is no user " + quote(entry.name) + " on this host",
                     "create the account, or remove the entry");
    } else if (user->uid == Uid(0)) {
        problems.add(entry.where, key, quote(entry.name) + " is root under another name (uid 0)", "name an ordinary account");
    } else {
        check_roots(entry, *user, observer, problems, unverified);
        check_named_files(policy, entry, user, observer, problems, unverified);
    }
}

// The wrapper reads the policy with its user's rights, so a file that only root can read stops everybody.
void check_readable_by_all(const std::string &path, mode_t needed, const char *rights, Problems &problems)
{
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || (status.st_mode & needed) == needed) return; // absent: load_policy has said so
    problems.add({path}, "", fmt::format("not readable by all (mode {:04o}), and pi reads it as its user", status.st_mode & 07777U),
                 command_on(std::string("chmod ") + rights, path, "let all users read what it leads to"));
}

void check_env_files(const Policy &policy, const Observer &observer, Problems &problems, Unverified &unverified)
{
    for (const auto &file : policy.env_files) {
        if (!observer.root()) {
            unverified.push_back(file.path + " (" + to_string(file.where) + "): only root can read it");
            continue;
        }
        try {
            read_managed_env_files({file});
        } catch (const Failure &failure) {
            problems.add(file.where, "env_files", failure.what(), "correct it, or take it out of the list");
        }
    }
}

void check_view(const Policy &policy, const Observer &observer, Problems &problems, Unverified &unverified)
{
    if (!observer.root()) {
        if (!policy.view_paths.empty())
            unverified.push_back("view_paths (" + to_string(policy.view_paths.front().where) + "): only root can look at them");
        return;
    }
    for (const auto &shown : policy.view_paths) {
        try {
            require_can_be_shown(policy, shown);
        } catch (const Failure &failure) {
            problems.add(shown.where, "view_paths", failure.what(), "correct it, or take it out of the list");
        }
    }
    if (problems.has("agent") || problems.has("agent.binary")) return; // what is wrong with it is told
    try {
        auto without_paths = policy;
        without_paths.view_paths.clear();
        plan_host_view(without_paths);
    } catch (const Failure &failure) {
        problems.add(policy.agent.binary_where, "agent.binary", failure.what(), "install the agent elsewhere, or correct it");
    }
}

// Which accounts the agents have follows from the section `agent` and from each entry: none where one of these is wrong.
void check_accounts(Policy policy, Means means, Problems &problems, Unverified &unverified)
{
    for (const auto *key : {"agent", "agent.user", "agent.group", "agent.accounts", "agent.create_user", "users"})
        if (problems.has(key)) return;
    std::erase_if(policy.users, [&](const UserEntry &entry) {
        return !is_plain_name(entry.name) || problems.has(entry_key(entry)) || problems.has(entry_key(entry) + ".run_as");
    });
    check_agent_accounts(policy, needed_agent_accounts(policy, group_members), problems);
    if (means != Means::later) check_homes(policy, problems, unverified);
}

} // namespace

void check_installed_files(Problems &problems)
{
    if (!build::is_system_managed && ::access(build::sudo_path, F_OK) != 0)
        problems.add({}, "", fmt::format("{} is not there, and every start of pi goes through it", build::sudo_path),
                     "install the package sudo");
    const std::string main_file = policy_path;
    const auto directory = main_file.substr(0, main_file.rfind('/'));
    check_readable_by_all(directory, S_IROTH | S_IXOTH, "a+rx", problems);
    check_readable_by_all(main_file, S_IROTH, "a+r", problems);
    check_readable_by_all(directory_of_parts(main_file), S_IROTH | S_IXOTH, "a+rx", problems);
    check_readable_by_all(directory_of_users(main_file), S_IXOTH, "a+x", problems);
    for (const auto &files : {directory_of_parts(main_file), directory_of_users(main_file)})
        for (const auto &name : list_trusted_directory(files, ".yaml", "policy directory"))
            check_readable_by_all(files + "/" + name, S_IROTH, "a+r", problems);
}

Unverified check_host(const Policy &policy, const Observer &observer, Means means, Problems &problems)
{
    Unverified unverified;
    for (const auto &entry : policy.users)
        check_entry(policy, entry, observer, problems, unverified);
    if (!problems.has("agent") && !problems.has("agent.binary") && !check_agent_binary(policy, problems))
        unverified.push_back("agent.binary (" + policy.agent.binary + "): only root can look at it, for it is hidden");
    check_accounts(policy, means, problems, unverified);
    if (means != Means::later) check_method(policy, observer, means, problems, unverified);
    check_env_files(policy, observer, problems, unverified);
    check_view(policy, observer, problems, unverified);
    check_limits(policy, problems);
    return unverified;
}

std::vector<Diagnostic> find_what_starts_lack(const Policy &policy, const Observer &observer)
{
    Problems problems;
    Unverified unverified; // by root there is nothing
    check_homes(policy, problems, unverified);
    check_method(policy, observer, Means::installed, problems, unverified);
    return problems.all();
}

} // namespace pi_agent
