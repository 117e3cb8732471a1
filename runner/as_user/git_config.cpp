// Which settings of the user's git a session's git gets, and their configuration file.
#include "runner/as_user/git_identity.hpp"

#include "common/base/files.hpp"
#include "runner/as_user/git_settings.inc"
#include "runner/as_user/reader.hpp"

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
    const std::string lower = lower_case(std::string(text));
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

// Git's own places for files that nothing names.
constexpr std::array<std::pair<const char *, const char *>, 2> default_files{
    {{"core.attributesfile", "/.config/git/attributes"}, {"core.excludesfile", "/.config/git/ignore"}}};

// Sorts the settings into those that pass and notices about the others.
class Passing {
public:
    Passing(const UserPaths &paths, const std::string &home, const std::string &shown) : paths_(paths), home_(home), shown_(shown) {}

    void take(FoundGitSetting &&one)
    {
        auto &[name, value] = one.setting;
        GitIdentity &identity = found_.identity;
        const std::string rule = git_rule(name);
        if (has_word("filter.clean filter.smudge filter.process", rule)) add_filter(std::string(git_subsection(name)), value.value_or(""));
        if (name == "user.name" || name == "user.email") {
            if (value) (name == "user.name" ? identity.name : identity.email) = short_value(one);
        } else if (name == "safe.directory") {
            if (auto directory = safe_directory(value.value_or(""), home_, shown_); directory && fits(directory->size()))
                identity.safe_directories.push_back(std::move(*directory));
        } else if (name == "commit.gpgsign" || name == "tag.gpgsign") {
            (name == "commit.gpgsign" ? identity.signs_commits : identity.signs_tags) = git_truth(value).value_or(false);
        } else if (passes_into_session(one.setting)) {
            if (fits(name.size() + value.value_or("").size()) && identity.settings.size() < git_settings_limit)
                identity.settings.push_back(std::move(one.setting));
            else
                ++left_out_;
        } else if (!copied_git_file(name).empty() && value) {
            files_[name] = std::move(one);
        } else if (is_kept_for_its_secret(one.setting)) {
            has_secret_ = true;
        }
    }

    FoundIdentity finish(const RepositorySettings &repository)
    {
        for (const auto &[name, place] : default_files)
            if (!files_.contains(name)) files_[name] = {{name, home_ + place}, "", false};
        for (const auto &[name, one] : files_)
            copy(one);
        if (left_out_ != 0)
            say(std::to_string(left_out_) + " of your settings are ignored in the session: at most " + std::to_string(git_settings_limit) +
                " or " + std::to_string(git_settings_size / 1024) + " KiB of them are copied");
        if (has_secret_)
            found_.once.emplace_back("settings of yours with a password or token in an address are ignored in a session; give the agent's "
                                     "git a token of its own (docs/concepts/git-in-a-session.md)");
        look_at(repository);
        return std::move(found_);
    }

private:
    std::string short_value(FoundGitSetting &one)
    {
        if (one.setting.value->size() > git_name_limit)
            throw Failure(ExitStatus::configuration, one.setting.name + " in " + escape_for_display(one.file) + " is longer than " +
                                                         std::to_string(git_name_limit) + " bytes");
        return std::move(*one.setting.value);
    }

    bool fits(std::size_t size)
    {
        if (size > size_left_) return false;
        size_left_ -= size;
        return true;
    }

    void add_filter(std::string name, const std::string &command)
    {
        skips_smudge_ = skips_smudge_ || (name == "lfs" && command.find("--skip") != std::string::npos);
        filters_.insert(std::move(name));
    }

    void say(std::string notice) { found_.notices.push_back(std::move(notice)); }

    // A missing file is not an error for git.
    void copy(const FoundGitSetting &one)
    {
        const auto &[name, value] = one.setting;
        if (value->empty()) return;
        const std::string path = path_in_setting(*value, home_);
        const auto left_out = [&, &key = name](const std::string &why) {
            say(key + ": " + escape_for_display(path) + " is left out: " + why);
        };
        if (one.by_agents && defence_is_on("git-files-of-agents"))
            return left_out("an agent can have written that setting in " + escape_for_display(one.file) +
                            "; set it in a file outside your projects");
        if (path.front() != '/') return left_out("it is not an absolute path");
        try {
            const HostFile file = open_host_file(*paths_.follow(path));
            if (!file.fd) return left_out(file.problem);
            found_.identity.files[name] = read_whole(file.fd, git_file_copy_limit, "it");
        } catch (const SystemFailure &failure) {
            if (failure.error_number() != ENOENT && failure.error_number() != ENOTDIR) left_out(failure.what());
        } catch (const Failure &failure) {
            left_out(failure.what());
        }
    }

    // Where sessions find it, too.
    static bool has_git_lfs()
    {
        const std::vector<std::string> directories = system_path();
        return std::any_of(directories.begin(), directories.end(),
                           [](const std::string &directory) { return access((directory + "/git-lfs").c_str(), X_OK) == 0; });
    }

    void look_at(const RepositorySettings &repository)
    {
        if (filters_.contains("lfs") && has_git_lfs()) {
            found_.identity.lfs = skips_smudge_ ? GitLfs::skip_smudge : GitLfs::all;
            filters_.erase("lfs");
        }
        for (const auto &name : repository.filters)
            if (filters_.contains(name))
                found_.once.push_back(
                    "the filter '" + escape_for_display(name) +
                    "' of this repository's .gitattributes does not run in a session, because " +
                    "it is a program of your own settings, and commits of a session store such files unfiltered; " +
                    (name == "lfs"
                         ? "ask the administrator to install git-lfs on this host"
                         : "outside, set it in the repository (git config filter.NAME.clean ...) to a program that the session has"));
        const bool users = found_.identity.signs_commits || found_.identity.signs_tags;
        if (repository.signs.value_or(users)) found_.signing = repository.signs ? GitSigning::of_repository : GitSigning::of_user;
    }

    const UserPaths &paths_;
    const std::string &home_;
    const std::string &shown_;
    FoundIdentity found_;
    std::map<std::string, FoundGitSetting> files_;
    std::set<std::string> filters_;
    std::size_t size_left_ = git_settings_size;
    std::size_t left_out_ = 0;
    bool skips_smudge_ = false;
    bool has_secret_ = false;
};

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
    return !value || value->find('\0') != std::string::npos ? "" : std::string("\t") + key + " = " + quoted(*value) + "\n";
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

} // namespace

bool passes_into_session(const GitSetting &setting)
{
    if (setting.value && setting.value->find('\0') != std::string::npos) return false;
    return !defence_is_on("git-settings-list") ? is_name(setting.name) : is_listed(setting) && !has_secret(setting);
}

std::string copied_git_file(std::string_view name)
{
    const auto *const found =
        std::find_if(file_settings.begin(), file_settings.end(), [&](const auto &file) { return file.first == name; });
    return found == file_settings.end() ? "" : found->second;
}

bool is_kept_for_its_secret(const GitSetting &setting)
{
    return is_listed(setting) && has_secret(setting);
}

std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown)
{
    if (value.empty() || value == "*") return value;
    const std::string path = path_in_setting(value, home);
    const bool and_below = path.ends_with("/*"); // git 2.46 and newer
    const std::string directory = without_trailing_slashes(and_below ? path.substr(0, path.size() - 1) : path);
    if (is_within(directory, shown) || (and_below && is_within(shown, directory))) return path;
    return std::nullopt;
}

FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline, const RepositorySettings &repository)
{
    FoundIdentity found;
    std::vector<std::string> notices;
    try {
        Passing passing(paths, home, shown);
        for (auto &one : read_git_files(user, paths, home, deadline, notices))
            passing.take(std::move(one));
        found = passing.finish(repository);
    } catch (const Failure &failure) {
        found.problem = failure.what(); // nothing else of it is set by then
    }
    found.notices.insert(found.notices.begin(), notices.begin(), notices.end());
    found.notices.resize(std::min(found.notices.size(), git_notice_limit));
    found.once.resize(std::min(found.once.size(), git_notice_limit));
    return found;
}

std::string git_identity_text(const GitIdentity &identity)
{
    std::string text = "[user]\n" + setting("name", identity.name) + setting("email", identity.email);
    if (!identity.safe_directories.empty()) text += "[safe]\n";
    for (const auto &directory : identity.safe_directories)
        text += setting("directory", directory);
    for (const auto &one : identity.settings)
        if (passes_into_session(one)) text += whole_setting(one);
    for (const auto &[name, content] : identity.files)
        if (const std::string copy = copied_git_file(name); !copy.empty()) text += whole_setting({name, git_file_inside(copy)});
    return text + lfs_filter(identity.lfs);
}

std::string git_signing_text(const GitIdentity &identity)
{
    return (identity.signs_commits ? whole_setting({"commit.gpgSign", "true"}) : "") +
           (identity.signs_tags ? whole_setting({"tag.gpgSign", "true"}) : "");
}

} // namespace pi_agent
