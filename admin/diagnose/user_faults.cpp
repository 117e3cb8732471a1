// What is wrong with a user's own things: the documents that a policy has for the agent's home, files that it names, and what the login
// shell starts.
#include "admin/diagnose/faults.hpp"

#include "admin/programs/program.hpp"
#include "common/as_user/root_path.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_values.hpp"
#include "runner/plan/environment.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

namespace pi_agent {

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
    if (entry.signing_key) files.push_back({entry.signing_key_where, key + "signing.key", "the key", *entry.signing_key});
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
                     " write: pi would take their changes for those of " + whose,
                 "move it out of all roots, and name the new place");
}

// As the policy writes it: "~/x" for what is relative to the home.
std::string as_text(const std::string &path)
{
    return path.front() == '/' ? path : "~/" + path;
}

constexpr int shell_patience_seconds = 10;
constexpr std::size_t said_limit = 500; // bytes of what it says instead
constexpr const char *found_mark = "pi-agent-found:";
constexpr const char *home_mark = "pi-agent-home:";

// First in sh: where npm, nvm, mise, volta, bun and pnpm put programs of a user's own; a pattern that fits nothing names no file. Then in
// the user's login shell, where that takes -l, -i and -c; else in sh again.
std::string script(const std::string &command)
{
    return "for d in .local/bin bin .npm-global/bin .local/share/npm-global/bin node_modules/.bin .bun/bin .volta/bin .local/share/pnpm "
           ".nvm/versions/node/v[0-9]*/bin .local/share/mise/installs/*/*/bin; do for f in \"$HOME\"/$d/" +
           command + "; do if [ -x \"$f\" ]; then printf '" + home_mark + "%s\\n' \"$f\"; fi; done; done; " + "find='printf \"\\n" +
           found_mark + "%s\\n\" \"$(command -v " + command +
           ")\"'; case ${SHELL##*/} in sh|bash|dash|ksh|mksh|zsh) exec \"$SHELL\" -l -i -c \"$find\";; *) exec sh -l -i -c \"$find\";; "
           "esac";
}

} // namespace

std::string secret_in_document(const std::string &document, const std::string &path, const std::set<std::string> &variables)
{
    return SecretSearch(variables).in(Plain::parse(document), path);
}

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
    const auto rules = rules_of_user(policy, *user);
    if (!rules) return; // nobody starts by it
    std::vector<std::string> paths;
    for (const auto &file : files)
        paths.push_back(expand_home(as_text(file.path), *user));
    const std::vector<Finding> places = observer.agents_on_way(policy, *rules, *user, paths);
    for (std::size_t index = 0; index < files.size(); ++index)
        if (places[index].kind == Finding::Kind::usable && !places[index].text.empty())
            refuse(files[index], paths[index], places[index].text, user->name, problems);
}

std::vector<std::string> names_of_wrapper(const std::string &command, const std::string &wrapper)
{
    std::vector<std::string> names = {wrapper};
    for (const auto &directory : system_path()) {
        const auto name = directory + "/" + command;
        try {
            if (resolve_trusted(name, "command").canonical == wrapper) names.push_back(name);
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): it does not exist, or others than root can change it
        }
    }
    return names;
}

Faults judge_shell(const std::string &output, const std::string &user, const std::string &command, const std::vector<std::string> &wrapper)
{
    Faults faults;
    std::set<std::string> named;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        for (const std::string mark : {found_mark, home_mark}) {
            if (line.compare(0, mark.size(), mark) != 0) continue;
            const std::string found = line.substr(mark.size());
            if (std::find(wrapper.begin(), wrapper.end(), found) != wrapper.end() || !named.insert(found).second) continue;
            if (found.empty())
                faults.push_back({"no-pi", "the login shell of " + user + " finds no " + command,
                                  "put the directory of " + wrapper.front() + " on its PATH"});
            else if (found[0] == '/')
                faults.push_back({"other-pi",
                                  user + (mark == found_mark ? "'s shell starts " : " has ") + escape_for_display(found) +
                                      ", which is not the wrapper: what it runs is not confined",
                                  "remove it, or ask " + user + " to (npm uninstall -g, or rm)"});
            else
                faults.push_back(
                    {"other-pi", "the login shell of " + user + " has an alias or a function " + command + ": " + escape_for_display(found),
                     "ask " + user + " to remove it"});
        }
    }
    return faults;
}

Faults find_user_faults(const AsRoot &root, const Account &user, const std::string &command, const std::vector<std::string> &wrapper)
{
    try {
        const auto result = run_as_user(root, user, {"sh", "-c", script(command)}, shell_patience_seconds, NewPrivileges::refused);
        if (result.output.find(found_mark) == std::string::npos)
            return {{"shell",
                     "the login shell of " + user.name + " does not come to the question (status " + std::to_string(result.status) +
                         "): " + one_line(result.output.substr(0, said_limit)),
                     "look at its start files"}};
        return judge_shell(result.output, user.name, command, wrapper);
    } catch (const Failure &failure) { // the user's own shell kept it
        return {{"shell", "the login shell of " + user.name + " does not answer: " + failure.what(), "look at its start files"}};
    }
}

} // namespace pi_agent
