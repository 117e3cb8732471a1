// Which settings of the user's git a session's git gets, and the file that holds them.
#include "runner/plan/git_config.hpp"

#include "common/seams/seams.hpp"
#include "runner/plan/git_settings.inc"

#include <cctype>

namespace pi_agent {

// The list of settings that pass. A setting of a newer git does not pass until somebody has looked at it.

namespace {

constexpr std::string_view allowed_settings = GIT_SETTINGS; // whole names

// Sections that hold only colours, formats and switches. Of `pager`, settings that name a program do not pass (runs_code).
constexpr std::string_view allowed_sections = "advice color column pager pretty";

constexpr std::array<std::pair<std::string_view, const char *>, 5> file_settings{{{"commit.template", "template"},
                                                                                  {"core.attributesfile", "attributes"},
                                                                                  {"core.excludesfile", "ignore"},
                                                                                  {"gpg.ssh.allowedsignersfile", "allowed_signers"},
                                                                                  {"mailmap.file", "mailmap"}}};

bool is_word(std::string_view text)
{
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](unsigned char byte) { return std::isalnum(byte) != 0 || byte == '-'; });
}

// As git writes names: only the part between section and key can hold arbitrary bytes, except the end of a line.
bool is_name(std::string_view name)
{
    const std::size_t first = name.find('.');
    return first != std::string_view::npos && is_word(name.substr(0, first)) && is_word(name.substr(name.rfind('.') + 1)) &&
           name.find('\n') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

// An address with a user name in it, which many hosts take a token for; git@ of ssh is not a secret. Or a header that authorises.
bool holds_secret(std::string_view text)
{
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
    if (lower.find("extraheader") != std::string::npos || lower.find("authorization") != std::string::npos) return true;
    for (std::size_t at = lower.find("://"); at != std::string::npos; at = lower.find("://", at + 1)) {
        const std::string host = lower.substr(at + 3, lower.find_first_of("/ \t\n", at + 3) - at - 3);
        const std::string who = host.substr(0, host.rfind('@'));
        const bool is_ssh = at >= 3 && lower.compare(at - 3, 3, "ssh") == 0;
        if (host.find('@') != std::string::npos && (!is_ssh || who.find(':') != std::string::npos)) return true;
        if (lower.find('?', at) != std::string::npos) return true;
    }
    return false;
}

bool is_listed(const GitSetting &setting)
{
    const std::string &name = setting.name;
    if (!is_name(name)) return false;
    const std::string_view section = std::string_view(name).substr(0, name.find('.'));
    const bool is_short = name.find('.') == name.rfind('.');
    // `!` starts a program; an option of git itself, before the command, can name one.
    if (section == "alias")
        return is_short && setting.value && !setting.value->empty() &&
               std::string_view("!-").find((*setting.value)[0]) == std::string_view::npos;
    if (name != "core.attributesfile" && runs_code(setting)) return false;
    if (section == "url") return has_word("url.insteadof url.pushinsteadof", git_rule(name)) && !is_short;
    // A file of the project, by its own name; files of the user's are copied.
    if (!copied_git_file(name).empty())
        return setting.value && !setting.value->empty() && std::string_view("/~%:").find(setting.value->front()) == std::string_view::npos;
    return has_word(allowed_settings, name) || has_word(allowed_sections, section);
}

bool has_secret(const GitSetting &setting)
{
    return holds_secret(setting.name) || holds_secret(setting.value.value_or(""));
}

} // namespace

bool passes_into_session(const GitSetting &setting)
{
    if (setting.value && setting.value->find('\0') != std::string::npos) return false;
    if (!defence_is_on("git-settings-list")) return is_name(setting.name);
    return is_listed(setting) && !has_secret(setting);
}

std::string copied_git_file(std::string_view name)
{
    const auto *const found =
        std::find_if(file_settings.begin(), file_settings.end(), [&](const auto &file) { return file.first == name; });
    return found == file_settings.end() ? "" : found->second;
}

std::string git_file_inside(const std::string &copy)
{
    return "/run/pi-agent/git/" + copy;
}

bool is_kept_for_its_secret(const GitSetting &setting)
{
    return is_listed(setting) && has_secret(setting);
}

// Writing a configuration file.

namespace {

// Inside quotes only these have another meaning. A carriage return would vanish before a newline, but a newline is written as "\n".
std::string quoted(const std::string &value)
{
    if (!defence_is_on("git-config-quoting")) return value;
    std::string text = "\"";
    for (const char byte : value) {
        if (byte == '"' || byte == '\\') text += '\\';
        if (byte == '\n')
            text += "\\n";
        else
            text += byte;
    }
    return text + '"';
}

std::string setting(const char *key, const std::optional<std::string> &value)
{
    if (!value || value->find('\0') != std::string::npos) return "";
    return std::string("\t") + key + " = " + quoted(*value) + "\n";
}

// As `git lfs install` writes it; no part of the user's own line is in it.
std::string lfs_filter(GitLfs lfs)
{
    if (lfs == GitLfs::none) return "";
    const std::string skip = lfs == GitLfs::skip_smudge ? " --skip" : "";
    return "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge" + skip +
           " -- %f\n\tprocess = git-lfs filter-process" + skip + "\n\trequired = true\n";
}

// Written with a section of its own.
std::string whole_setting(const GitSetting &one)
{
    const std::size_t first = one.name.find('.');
    const std::size_t last = one.name.rfind('.');
    const std::string key = one.name.substr(last + 1);
    std::string text = "[" + one.name.substr(0, first);
    if (last > first) text += " " + quoted(one.name.substr(first + 1, last - first - 1));
    return text + "]\n" + (one.value ? setting(key.c_str(), one.value) : "\t" + key + "\n");
}

// Which other settings of the user's pass, as a child of the user's reported them.
std::string text_of_others(const GitIdentity &identity)
{
    std::string text;
    for (const auto &one : identity.settings)
        if (passes_into_session(one)) text += whole_setting(one);
    for (const auto &[name, content] : identity.files)
        if (const std::string copy = copied_git_file(name); !copy.empty()) text += whole_setting({name, git_file_inside(copy)});
    if (identity.signs_commits) text += whole_setting({"commit.gpgSign", "true"});
    if (identity.signs_tags) text += whole_setting({"tag.gpgSign", "true"});
    return text + lfs_filter(identity.lfs);
}

} // namespace

std::string git_config_text(const std::string &included, const GitIdentity &identity, RepositoryConfig config)
{
    // Owners look different inside and outside: with checkStat, user and agent do not make each other read all files again. Worktrees that
    // are not shown look removed. Tracking would be written to a file that cannot be written.
    std::string text = "[core]\n\tcheckStat = minimal\n[gc]\n\tworktreePruneExpire = never\n";
    if (config == RepositoryConfig::protected_) text += "[branch]\n\tautoSetupMerge = false\n";
    text += "[include]\n" + setting("path", included) + "[user]\n" + setting("name", identity.name) + setting("email", identity.email);
    if (!identity.safe_directories.empty()) text += "[safe]\n";
    for (const auto &directory : identity.safe_directories)
        text += setting("directory", directory);
    return text + text_of_others(identity);
}

void add_git_settings(EnvironmentInput &environment, const std::vector<std::pair<std::string, std::string>> &settings,
                      const std::string &from)
{
    std::size_t count = 0;
    for (const auto &[name, value] : settings) {
        const std::string number = std::to_string(count++);
        environment.defaults["GIT_CONFIG_KEY_" + number] = {name, from};
        environment.defaults["GIT_CONFIG_VALUE_" + number] = {value, from};
    }
    environment.defaults["GIT_CONFIG_COUNT"] = {std::to_string(count), from};
}

} // namespace pi_agent
