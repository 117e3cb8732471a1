// What is wrong in a user's home: in the documents there, and in files that a policy names.
#include "admin/diagnose/faults.hpp"
#include "admin/host/accounts.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/decide/root_path.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy_env.hpp"
#include "common/policy/policy_load.hpp"
#include "common/policy/policy_paths.hpp"
#include "runner/as_user/named_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <map>
#include <sys/stat.h>

namespace pi_agent {

namespace {

struct AgentOfUser {
    std::string account, key;
    Position where;
};

// An entry of the user's own counts before those of groups. Where groups contradict each other it is the first: the user is told at a
// start.
std::map<std::string, AgentOfUser> agents_of_users(const Policy &policy)
{
    std::map<std::string, AgentOfUser> agents;
    const auto add = [&](const std::string &user, const UserEntry &entry) {
        agents.emplace(user, AgentOfUser{agent_account_name(policy, user, entry.run_as), entry_key(entry), entry.where});
    };
    for (const auto &entry : policy.users)
        if (!entry.is_group) add(entry.name, entry);
    for (const auto &entry : policy.users)
        if (entry.is_group)
            for (const auto &member : group_members(entry.name))
                if (is_plain_name(member) && !is_agent_account(policy, member)) add(member, entry);
    return agents;
}

void check_owner(const std::string &path, const std::string &user, const AgentOfUser &agent, const struct stat &facts, Problems &problems)
{
    if (facts.st_uid == 0) return; // only begun: the next start goes on with it
    const auto account = find_account(agent.account);
    if (account && account->uid == Uid(facts.st_uid) && account->gid == Gid(facts.st_gid)) return;
    problems.add(
        agent.where, agent.key,
        fmt::format("{} belongs to {}, but by the policy the agent of {} runs as {}{}, which could not use it", path,
                    escape_for_display(name_or_number(Uid(facts.st_uid))), user, agent.account,
                    account ? "" : " (an account that does not exist yet)"),
        fmt::format("keep the account (run_as, agent.accounts), or begin with an empty home: sudo pi-agentctl state reset --user {0} "
                    "(before that, sudo pi-agentctl state export --user {0} DIRECTORY copies the agent's sessions)",
                    user));
}

} // namespace

void check_homes(const Policy &policy, Problems &problems, Unverified &unverified)
{
    for (const auto &[user, agent] : agents_of_users(policy)) {
        const std::string path = policy.agent.state_dir + "/users/" + user + "/home"; // all but the last is root's
        struct stat facts {};
        if (::lstat(path.c_str(), &facts) == 0) {
            check_owner(path, user, agent, facts, problems);
        } else if (errno == EACCES) {
            unverified.push_back("whose the agents' homes are: only root can look into " + policy.agent.state_dir);
            return;
        } else if (errno != ENOENT && errno != ENOTDIR) {
            problems.add(agent.where, agent.key, SystemFailure(errno, "examining " + path).what(), "");
        }
    }
}

namespace {

using Plain = nlohmann::json;

std::string lower(std::string text)
{
    for (char &byte : text)
        if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
    return text;
}

// A header that says who asks: "Authorization", "Proxy-Authorization", "Cookie".
bool is_authorising(const std::string &name)
{
    const std::string header = lower(name);
    return header.ends_with("authorization") || header == "cookie";
}

class SecretSearch {
public:
    explicit SecretSearch(const std::set<std::string> &variables) : variables_(variables) {}

    [[nodiscard]] std::string in(const Plain &data, const std::string &path) const
    {
        if (!data.is_structured()) return {};
        const Plain *before = nullptr; // in a list
        for (const auto &[key, value] : data.items()) {
            std::string below = path + "." + key;
            const bool is_secret = value.is_string() && (data.is_object() ? is_secret_value(key, value.get<std::string>())
                                                                          : is_secret_word(before, value.get<std::string>()));
            if (is_secret) return below;
            if (auto found = in(value, below); !found.empty()) return found;
            before = &value;
        }
        return {};
    }

private:
    // NAME, $NAME or ${NAME}, after "Bearer" or the like, too.
    [[nodiscard]] bool is_reference(std::string text) const
    {
        for (const char *scheme : {"bearer ", "basic ", "token "})
            if (lower(text).starts_with(scheme)) text = text.substr(text.find(' ') + 1);
        if (text.starts_with("${") && text.ends_with("}"))
            text = text.substr(2, text.size() - 3);
        else if (text.starts_with("$"))
            text = text.substr(1);
        return text.empty() || lower(text) == "none" || variables_.contains(text);
    }

    [[nodiscard]] bool is_secret_value(const std::string &name, const std::string &value) const
    {
        const bool authorises = is_authorising(name) || lower(value).starts_with("bearer ") || lower(value).starts_with("basic ");
        return (authorises || looks_secret(name, value)) && !is_reference(value);
    }

    // "--token=x", "x" after "--token", "Authorization: x"; and what is one by itself.
    [[nodiscard]] bool is_secret_word(const Plain *before, const std::string &word) const
    {
        if (before != nullptr && before->is_string()) {
            const auto option = before->get<std::string>();
            if (option.starts_with("-") && option.find('=') == std::string::npos && is_secret_value(option, word)) return true;
        }
        for (const char *divider : {"=", ": "}) {
            const auto at = word.find(divider);
            if (at != std::string::npos && is_secret_value(word.substr(0, at), word.substr(at + std::string(divider).size()))) return true;
        }
        return is_secret_value("", word);
    }

    const std::set<std::string> &variables_;
};

} // namespace

std::string secret_in_document(const std::string &document, const std::string &path, const std::set<std::string> &variables)
{
    return SecretSearch(variables).in(Plain::parse(document), path);
}

namespace {

struct NamedFile {
    Position where;
    std::string key;
    std::string what;
    std::string path; // absolute, or relative to the home
};

void add_certificates(std::vector<NamedFile> &files, const Environment &env, const EnvironmentPlaces &places, const std::string &key)
{
    for (const auto &[name, value] : env) {
        if (!names_certificates(name) || value.empty() || value.front() != '/') continue;
        const auto place = places.find(name);
        files.push_back({place == places.end() ? Position{} : place->second, key + "env." + name, "the file of certificates", value});
    }
}

std::vector<NamedFile> named_files(const Policy &policy, const UserEntry &entry)
{
    std::vector<NamedFile> files;
    const std::string key = entry_key(entry) + ".";
    if (entry.config) files.push_back({entry.config_where, key + "config", "the config directory", *entry.config});
    if (entry.ssh_key) files.push_back({entry.ssh_key_where, key + "ssh.key", "the key", *entry.ssh_key});
    if (policy.host_env_files_where.line != 0)
        for (const auto &file : policy.host_env_files)
            files.push_back({policy.host_env_files_where, "host_env_files", "the file of variables", file});
    add_certificates(files, entry.env, entry.env_where, key);
    add_certificates(files, policy.env, policy.env_where, "");
    return files;
}

void refuse(const NamedFile &file, const std::string &shown, const std::string &place, const std::string &whose, Problems &problems)
{
    problems.add(file.where, file.key,
                 file.what + " " + quote(shown) + " lies in " + quote(place) + ", where agents of " + whose +
                     " write: what they leave there would count as if " + whose + " had written it",
                 "keep it outside of all roots, and name that place");
}

// As the policy writes it: "~/x" for what is relative to the home.
std::string as_text(const std::string &path)
{
    return path.front() == '/' ? path : "~/" + path;
}

} // namespace

void check_named_files(const Policy &policy, const UserEntry &entry, const std::optional<Account> &user, const Observer &observer,
                       Problems &problems, Unverified &unverified)
{
    const std::vector<NamedFile> files = named_files(policy, entry);
    if (files.empty()) return;
    if (!user || !observer.can_look_for(*user)) {
        for (const auto &file : files)
            for (const auto &root : entry.roots)
                if (is_within(as_text(file.path), without_trailing_slashes(root.text)))
                    refuse(file, as_text(file.path), root.text, entry_key(entry), problems);
        if (user) unverified.push_back(entry_key(entry) + ": only root or " + user->name + " can verify where files that it names lie");
        return;
    }
    const auto access = find_access_rules(policy, *user, policy_path);
    const auto *rules = std::get_if<AccessRules>(&access);
    if (rules == nullptr) return; // nobody starts by it
    std::vector<std::string> paths;
    for (const auto &file : files)
        paths.push_back(expand_home(as_text(file.path), *user));
    const std::vector<Finding> places = observer.agents_on_way(policy, *rules, *user, paths);
    for (std::size_t index = 0; index < files.size(); ++index)
        if (places[index].kind == Finding::Kind::usable && !places[index].text.empty())
            refuse(files[index], paths[index], places[index].text, user->name, problems);
}

} // namespace pi_agent
