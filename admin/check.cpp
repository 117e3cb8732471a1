// The policy held against itself and against the host.
#include "admin/check.hpp"

#include "admin/accounts.hpp"
#include "admin/agent_binary.hpp"
#include "admin/draft.hpp"
#include "admin/explain_limits.hpp"
#include "admin/named_files.hpp"
#include "admin/problem_report.hpp"
#include "admin/table.hpp"
#include "common/escape.hpp"
#include "common/policy_env.hpp"
#include "common/policy_load.hpp"
#include "common/policy_paths.hpp"
#include "common/policy_sources.hpp"
#include "common/privileged_groups.hpp"
#include "common/remedy.hpp"
#include "common/trusted_file.hpp"
#include "runner/env_files.hpp"
#include "runner/host_view.hpp"
#include "runner/search_tools.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace pi_agent {

namespace {

void check_roots(const UserEntry &entry, const Account &user, const Observer &observer, Problems &problems, Unverified &unverified)
{
    const auto findings = observer.resolve_roots(entry.roots, user);
    for (std::size_t index = 0; index < findings.size(); ++index) {
        const auto key = fmt::format("{}.roots[{}]", entry_key(entry), index);
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

bool is_installed_policy(const std::string &path)
{
    if (path == policy_path) return true; // absent, or not ours to look at
    struct stat given {};
    struct stat installed {};
    return ::stat(path.c_str(), &given) == 0 && ::stat(policy_path, &installed) == 0 && given.st_dev == installed.st_dev &&
           given.st_ino == installed.st_ino;
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
    try {
        plan_host_view(policy);
    } catch (const Failure &failure) {
        if (policy.view_paths.empty())
            problems.add(policy.agent.binary_where, "agent.binary", failure.what(), "install the agent elsewhere, or correct it");
        else
            problems.add(policy.view_paths.front().where, "view_paths", failure.what(), "correct it, or take it out of the list");
    }
}

} // namespace

void check_installed_files(Problems &problems)
{
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

Unverified check_host(const Policy &policy, const Observer &observer, Problems &problems)
{
    Unverified unverified;
    for (const auto &entry : policy.users)
        check_entry(policy, entry, observer, problems, unverified);
    if (!check_agent_binary(policy, problems))
        unverified.push_back("agent.binary (" + policy.agent.binary + "): only root can look at it, for it is hidden");
    check_agent_accounts(policy, needed_agent_accounts(policy, group_members), problems);
    check_env_files(policy, observer, problems, unverified);
    check_view(policy, observer, problems, unverified);
    check_limits(policy, problems);
    return unverified;
}

std::vector<Diagnostic> find_warnings(const Policy &policy)
{
    auto warnings = find_exposed_secrets(policy);
    for (const auto &missing : missing_search_tools())
        warnings.push_back({{}, "", name_package(missing), ""});
    return warnings;
}

void warn(const std::vector<Diagnostic> &found, std::ostream &warnings)
{
    warnings << show_problems(found, "pi-agentctl: warning: ", read_again);
}

Policy load_for_check(const std::optional<std::string> &draft)
{
    if (!draft || is_installed_policy(*draft)) return load_policy(policy_path);
    const std::string holder = parent_of(std::filesystem::absolute(*draft).lexically_normal());
    if (holder == directory_of_parts(policy_path) || holder == directory_of_users(policy_path))
        throw Failure(ExitStatus::usage, escape_for_display(*draft) +
                                             " is a part of the installed policy, which 'pi-agentctl check' checks as a "
                                             "whole; 'sudo pi-agentctl edit NAME.yaml' tries a draft of a part");
    return parse_policy({{escape_for_display(*draft), read_draft(*draft)}});
}

CheckReport check_policy(const std::optional<std::string> &draft, CheckScope scope)
{
    CheckReport report;
    try {
        const auto policy = load_for_check(draft);
        report.entries = policy.users.size();
        report.enabled = policy.wrapper.enable;
        if (scope == CheckScope::policy_only) {
            report.warnings = find_exposed_secrets(policy);
            report.unverified = {"this host: --policy-only says not to look at it"};
            return report;
        }
        report.warnings = find_warnings(policy);
        Problems problems;
        if (!draft || is_installed_policy(*draft)) check_installed_files(problems);
        report.unverified = check_host(policy, Observer::self(), problems);
        problems.throw_if_any();
        report.idle = idle_defaults(policy);
    } catch (const PolicyError &error) {
        report.errors = error.diagnostics();
    }
    return report;
}

std::string to_text(const CheckReport &report)
{
    auto text = fmt::format("policy is valid: {} {} authorised{}\n", report.entries, report.entries == 1 ? "entry" : "entries",
                            report.enabled ? "" : ", but the wrapper is disabled: nobody can start pi");
    for (const auto &unverified : report.unverified)
        text += "not verified: " + unverified + '\n';
    return text + report.idle;
}

nlohmann::json to_json(const CheckReport &report)
{
    const auto list = [](const std::vector<Diagnostic> &diagnostics) {
        auto entries = nlohmann::json::array();
        for (const auto &diagnostic : diagnostics)
            entries.push_back(to_json(diagnostic));
        return entries;
    };
    return {{"valid", report.errors.empty()},
            {"errors", list(report.errors)},
            {"warnings", list(report.warnings)},
            {"unverified", report.unverified}};
}

void run_check(const std::optional<std::string> &draft, CheckScope scope, bool json, std::ostream &out, std::ostream &warnings)
{
    const auto report = check_policy(draft, scope);
    if (json) {
        print_json(to_json(report), out);
        if (!report.errors.empty()) throw Failure(ExitStatus::configuration, "the policy, or this host for it, is not valid");
        return;
    }
    warn(report.warnings, warnings);
    if (!report.errors.empty()) throw PolicyError(report.errors);
    out << to_text(report);
}

} // namespace pi_agent
