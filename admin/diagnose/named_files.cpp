// Holding the names of files against the roots.
#include "admin/diagnose/named_files.hpp"

#include "common/base/escape.hpp"
#include "common/decide/root_path.hpp"
#include "common/policy/policy_load.hpp"
#include "common/policy/policy_paths.hpp"
#include "runner/as_user/certificate_files.hpp"

#include <algorithm>

namespace pi_agent {

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
