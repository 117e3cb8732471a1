// Reading git's list of settings and writing a configuration file.
#include "runner/plan/git_config.hpp"

#include "common/seams/seams.hpp"
#include "runner/plan/git_allowed.hpp"

namespace pi_agent {

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

std::vector<GitSetting> read_git_settings(std::string_view output)
{
    std::vector<GitSetting> settings;
    while (!output.empty()) {
        const std::size_t end = output.find('\0');
        if (end == std::string_view::npos) break; // cut off
        const std::string_view entry = output.substr(0, end);
        output.remove_prefix(end + 1);
        const std::size_t newline = entry.find('\n');
        GitSetting &one = settings.emplace_back(GitSetting{std::string(entry.substr(0, newline)), std::nullopt});
        if (newline != std::string_view::npos) one.value = entry.substr(newline + 1);
    }
    return settings;
}

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
