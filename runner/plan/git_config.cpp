// Reading git's list of settings and writing a configuration file.
#include "runner/plan/git_config.hpp"

#include "common/seams/seams.hpp"

namespace pi_agent {

namespace {

// Inside quotes only these mean something else. A carriage return would vanish before a newline, but that is written as "\n".
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

} // namespace

std::vector<std::pair<std::string, std::string>> read_git_settings(std::string_view output)
{
    std::vector<std::pair<std::string, std::string>> settings;
    while (!output.empty()) {
        const std::size_t end = output.find('\0');
        if (end == std::string_view::npos) break; // cut off
        const std::string_view entry = output.substr(0, end);
        output.remove_prefix(end + 1);
        const std::size_t newline = entry.find('\n');
        if (newline != std::string_view::npos) settings.emplace_back(entry.substr(0, newline), entry.substr(newline + 1));
    }
    return settings;
}

std::string git_config_text(const std::string &included, const GitIdentity &identity, RepositoryConfig config)
{
    // Owners look otherwise inside than outside: with checkStat, user and agent do not make each other read all files again. Worktrees that
    // are not shown look removed. Tracking would be written to a file that cannot be written.
    std::string text = "[core]\n\tcheckStat = minimal\n[gc]\n\tworktreePruneExpire = never\n";
    if (config == RepositoryConfig::protected_) text += "[branch]\n\tautoSetupMerge = false\n";
    text += "[include]\n" + setting("path", included) + "[user]\n" + setting("name", identity.name) + setting("email", identity.email);
    if (!identity.safe_directories.empty()) text += "[safe]\n";
    for (const auto &directory : identity.safe_directories)
        text += setting("directory", directory);
    return text;
}

} // namespace pi_agent
