// What the caller's git says outside: who commits, which other settings pass, and which files they name.
#include "runner/as_user/git_identity.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_user/git_files.hpp"
#include "runner/as_user/named_files.hpp"
#include "runner/plan/environment.hpp"
#include "runner/plan/git_allowed.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <unistd.h>

namespace pi_agent {

std::optional<std::string> safe_directory(const std::string &value, const std::string &home, const std::string &shown)
{
    if (value.empty() || value == "*") return value;
    const std::string path = path_in_setting(value, home);
    const bool and_below = path.ends_with("/*"); // git 2.46 and newer
    const std::string directory = without_trailing_slashes(and_below ? path.substr(0, path.size() - 1) : path);
    if (is_within(directory, shown) || (and_below && is_within(shown, directory))) return path;
    return std::nullopt;
}

namespace {

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
        if (repository.signs.value_or(users)) found_.signing = repository.signs ? GitSigning::repositorys : GitSigning::users;
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

} // namespace

FoundIdentity find_git_identity(const AsUser &user, const UserPaths &paths, const std::string &home, const std::string &shown,
                                Deadline deadline, const RepositorySettings &repository)
{
    FoundIdentity found;
    GitFiles files(user, paths, home, deadline);
    try {
        Passing passing(paths, home, shown);
        // The second wins, as with git, which reads both.
        for (const char *name : {"/.config/git/config", "/.gitconfig"})
            for (auto &one : files.read(home + name))
                passing.take(std::move(one));
        found = passing.finish(repository);
    } catch (const Failure &failure) {
        found.problem = failure.what(); // nothing else of it is set by then
    }
    found.notices.insert(found.notices.begin(), files.notices().begin(), files.notices().end());
    found.notices.resize(std::min(found.notices.size(), git_notice_limit));
    found.once.resize(std::min(found.once.size(), git_notice_limit));
    return found;
}

} // namespace pi_agent
