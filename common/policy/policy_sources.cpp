// Finding and reading the files of the policy.
#include "common/policy/policy_sources.hpp"

#include "common/host/account.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/yaml/yaml_tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace pi_agent {

namespace {

constexpr const char *policy_suffix = ".yaml";

std::string beside(const std::string &main_file, const char *name)
{
    return main_file.substr(0, main_file.rfind('/') + 1) + name;
}

std::string file_of(const std::string &main_file, const std::string &user)
{
    return directory_of_users(main_file) + "/" + user + policy_suffix;
}

// Reads one file; what makes it untrustworthy or unreadable becomes a diagnostic.
void add_source(const std::string &path, std::vector<PolicySource> &sources, Problems &problems)
{
    try {
        sources.push_back({path, read_trusted_file(path, yaml_size_limit, "policy")});
    } catch (const SystemFailure &failure) {
        const bool absent = failure.error_number() == ENOENT;
        problems.add({path}, "", failure.what(),
                     absent ? "ask the administrator to write one: sudo pi-agentctl init, then sudo pi-agentctl apply (on NixOS: the "
                              "module m3ta.pi-agent)"
                            : "ask the administrator to make it readable for all: sudo pi-agentctl check says how");
    } catch (const Failure &failure) {
        problems.add({path}, "", failure.what(), "");
    }
}

std::vector<std::string> list_directory(const std::string &path, Problems &problems)
{
    std::vector<std::string> paths;
    try {
        for (const auto &name : list_trusted_directory(path, ".yml", "policy directory")) {
            problems.add({path + "/" + name}, "", "is not read as a part of the policy", "end its name with '.yaml', or move it away");
        }
        for (const auto &name : list_trusted_directory(path, policy_suffix, "policy directory"))
            paths.push_back(path + "/" + name);
    } catch (const Failure &failure) {
        problems.add({path}, "", failure.what(), "");
    }
    return paths;
}

void add_all_users(const std::string &main_file, std::vector<PolicySource> &sources, Problems &problems)
{
    for (const auto &path : list_directory(directory_of_users(main_file), problems)) {
        if (user_of_file(path, main_file))
            add_source(path, sources, problems);
        else
            problems.add({path}, "", "is not named after a user",
                         "name it NAME.yaml after an account; entries of groups belong in policy.yaml or policy.d");
    }
}

// If it cannot be opened, or a link on the way leads nowhere, reading it reports why.
bool is_there(const std::string &path)
{
    try {
        return if_there([&] { return open_trusted(path, O_PATH, "policy"); }).is_open();
    } catch (const Failure &) {
        return true;
    }
}

} // namespace

std::string directory_of_parts(const std::string &main_file)
{
    return beside(main_file, "policy.d");
}

std::string directory_of_users(const std::string &main_file)
{
    return beside(main_file, "users.d");
}

std::optional<std::string> user_of_file(const std::string &path, const std::string &main_file)
{
    const std::string directory = directory_of_users(main_file) + "/";
    if (!path.starts_with(directory) || !path.ends_with(policy_suffix)) return std::nullopt;
    std::string name = path.substr(directory.size());
    name.resize(name.size() - std::string_view(policy_suffix).size());
    if (!is_account_name(name)) return std::nullopt;
    return name;
}

bool has_user_files(const std::string &main_file)
{
    return is_there(directory_of_users(main_file));
}

bool has_user_file(const std::string &main_file, const std::string &user)
{
    return is_account_name(user) && is_there(file_of(main_file, user));
}

bool is_missing_policy(const std::string &main_file)
{
    return !is_there(main_file);
}

std::vector<PolicySource> read_policy_sources(const std::string &main_file, const std::optional<std::string> &user)
{
    Problems problems;
    auto sources = read_policy_sources(main_file, user, problems);
    if (!problems.empty())
        throw PolicyError(problems.all(), is_missing_policy(main_file) ? FailureKind::no_policy : FailureKind::invalid_policy);
    return sources;
}

std::vector<PolicySource> read_policy_sources(const std::string &main_file, const std::optional<std::string> &user, Problems &problems)
{
    std::vector<PolicySource> sources;
    add_source(main_file, sources, problems);
    for (const auto &path : list_directory(directory_of_parts(main_file), problems))
        add_source(path, sources, problems);
    if (!user)
        add_all_users(main_file, sources, problems);
    else if (has_user_file(main_file, *user))
        add_source(file_of(main_file, *user), sources, problems);
    return sources;
}

std::string policy_stamp(const std::string &main_file, const std::string &user)
{
    const auto directory = directory_of_parts(main_file);
    std::vector<std::string> paths = {main_file, directory};
    if (is_account_name(user)) paths.push_back(file_of(main_file, user));
    try {
        for (const auto &name : list_trusted_directory(directory, policy_suffix, "policy directory"))
            paths.push_back(directory + "/" + name);
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): what is wrong is found out by who reads it
    }
    std::string stamp;
    for (const auto &path : paths) {
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) status = {}; // as above
        stamp +=
            fmt::format("{}:{}:{}:{}.{} ", status.st_dev, status.st_ino, status.st_size, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
    }
    return stamp;
}

} // namespace pi_agent
