// Files that an agent writes into a project and that processes outside read: git's configuration, its links, package.json.
#include "common/as_user/git_syntax.hpp"
#include "runner/as_user/git_paths.hpp"
#include "runner/plan/git_config.hpp"
#include "support/property.hpp"
#include "wrapper/aftermath.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

// Lower case, so that what is compared with it is not missed for how the agent writes it.
void require_key(std::string_view key)
{
    const auto is_letter = [](char byte) { return byte >= 'a' && byte <= 'z'; };
    const auto is_plain = [&](char byte) { return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '-'; };
    require(!key.empty() && is_letter(key.front()) && std::all_of(key.begin(), key.end(), is_plain), "a key that git has not");
}

void try_settings(std::string_view text)
{
    std::size_t length = 0;
    for (const auto &setting : parse_git_settings(text).list) {
        require_key(std::string_view(setting.name).substr(setting.name.rfind('.') + 1));
        length += setting.value.value_or("").size();
        runs_code(setting);
    }
    require(length <= text.size(), "values that are longer than the text");
}

const GitSetting *last_of(const GitSettings &settings, const std::string &name)
{
    const auto found =
        std::find_if(settings.list.rbegin(), settings.list.rend(), [&](const auto &setting) { return setting.name == name; });
    return found == settings.list.rend() ? nullptr : &*found;
}

// What we write for a session's git is that to git's own syntax, whatever bytes a user's name holds.
void try_identity(const std::string &name, const std::string &email)
{
    const GitSettings read = parse_git_settings(git_config_text("/etc/gitconfig", {name, email, {name}}, RepositoryConfig::protected_));
    require(read.is_valid, "a configuration that git would not read");
    const GitSetting *included = last_of(read, "include.path");
    require(included != nullptr && included->value == "/etc/gitconfig", "another file is included");
    for (const auto &[key, value] : {std::pair("user.name", name), std::pair("user.email", email), std::pair("safe.directory", name)}) {
        const GitSetting *setting = last_of(read, key);
        if (value.find('\0') != std::string::npos)
            require(setting == nullptr, "a value that git cannot have");
        else
            require(setting != nullptr && setting->value == value, "a name or address that is another one to git");
    }
    const auto others = std::count_if(read.list.begin(), read.list.end(), [](const auto &setting) { return runs_code(setting); });
    require(others == 1, "a name or address that makes git run something"); // include.path
}

// Of settings that somebody chose, the session's git has those that pass, as they were, and no other.
void try_passing(std::string_view text)
{
    GitIdentity identity;
    identity.settings = parse_git_settings(text).list;
    const std::size_t own = parse_git_settings(git_config_text("/etc/gitconfig", {}, RepositoryConfig::protected_)).list.size();
    GitSettings read = parse_git_settings(git_config_text("/etc/gitconfig", identity, RepositoryConfig::protected_));
    require(read.is_valid, "a configuration that git would not read");
    read.list.erase(read.list.begin(), read.list.begin() + static_cast<std::ptrdiff_t>(own));
    std::erase_if(identity.settings, [](const auto &setting) { return !passes_into_session(setting); });
    require(read.list == identity.settings, "other settings than those that pass");
}

// -z: "name\nvalue\0"
void try_listed(const std::string &value)
{
    if (value.find('\0') != std::string::npos) return;
    const auto settings = read_git_settings(std::string("user.name\nfirst") + '\0' + "user.name\n" + value + '\0' + "user.email\ncut off");
    require(settings.size() == 2 && settings.back() == GitSetting{"user.name", value}, "git's list was read otherwise than it was written");
}

void try_links(const std::string &text)
{
    const auto path = gitdir_in(text);
    require(!path || (!path->empty() && text.starts_with("gitdir:") && text.find(*path) != std::string::npos), "a link that is not there");
    const auto worktree = worktree_of_config(text);
    require(!worktree || (!worktree->empty() && worktree->size() <= text.size()), "a working tree that is not there");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const std::string text(input);
    try_settings(input);
    try_passing(input);
    try_links(text);
    try_listed(text);
    const std::vector<std::string> two = parts_of(input, 2, '\x1f');
    try_identity(two[0], two[1]);
    const PackageScripts scripts = read_package_scripts(input);
    require_harmless(scripts.text.substr(0, scripts.text.find('=')));
    require(!scripts.run_at_install || !scripts.text.empty(), "something runs at an install, and nothing is there");
    require_linear(input, [](const std::string &many) {
        try_settings(many);
        try_links(many);
        read_package_scripts(many);
    });
}
