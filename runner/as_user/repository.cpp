// Reads git's links between a repository and its data (gitrepository-layout(5), git-worktree(1)), and its configuration and attributes as
// text.
#include "common/base/files.hpp"

#include "common/host/beneath.hpp"
#include "runner/as_user/git_identity.hpp"
#include "runner/as_user/project.hpp"

namespace pi_agent {

namespace {

constexpr std::size_t git_file_limit = 64UL * 1024;
constexpr std::size_t repository_levels_limit = 256;
constexpr const char *not_gits = "it is not a git directory";
constexpr const char *link_prefix = "gitdir: ";

struct stat stat_of(FdRef fd)
{
    return examine(fd, "examining a repository");
}

// Empty where there is no such regular file, or it is longer than any file that git writes.
std::string read_small(FdRef directory, const char *name)
{
    const UniqueFd file = open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!file || !S_ISREG(stat_of(file).st_mode)) return {};
    try {
        return read_whole(file, git_file_limit, name);
    } catch (const Failure &) {
        return {};
    }
}

// What git itself accepts as one (its is_git_directory): an agent that never saw a directory cannot have made these in it.
bool is_git_directory(FdRef directory)
{
    for (const char *name : {"HEAD", "objects", "refs"}) {
        struct stat facts {};
        const bool is_there = fstatat(directory.get(), name, &facts, AT_NO_AUTOMOUNT) == 0;
        if (!is_there || (name[0] != 'H' && !S_ISDIR(facts.st_mode))) return false;
    }
    return true;
}

bool names_back(FdRef top, FdRef directory)
{
    const std::string link = without_line_end(read_small(directory, "gitdir"));
    if (!link.empty()) { // of a worktree: its `.git` file
        const UniqueFd told = open_at(directory, link, O_PATH | O_NOFOLLOW);
        const UniqueFd own = open_at(top, ".git", O_PATH | O_NOFOLLOW);
        return told && own && is_same_file(stat_of(told), stat_of(own));
    }
    const auto worktree = worktree_of_config(read_small(directory, "config"));
    if (!worktree || !is_git_directory(directory)) return false;
    const UniqueFd told = open_at(directory, *worktree, O_PATH | O_DIRECTORY);
    return told && is_same_file(stat_of(told), stat_of(top));
}

GitDirectory open_git_directory(FdRef from, const std::string &path)
{
    GitDirectory found{open_at(from, path, O_PATH | O_DIRECTORY), 0, path, {}};
    if (!found.directory)
        found.problem = "it cannot be opened (" + std::string(SystemFailure(errno, "open").what()) + ")";
    else if (resolved_by_text(path.starts_with('/') ? path : kernel_path(from) + "/" + path) != kernel_path(found.directory) &&
             defence_is_on("git-back-link"))
        found.problem = "a symlink leads to it";
    return found;
}

// Where a worktree's data belongs in the main repository's git directory: COMMON/worktrees/NAME and nowhere else.
bool lies_in_worktrees_of(FdRef directory, FdRef common)
{
    const std::string path = kernel_path(directory);
    const std::string worktrees = kernel_path(common) + "/worktrees/";
    return path.compare(0, worktrees.size(), worktrees) == 0 && path.find('/', worktrees.size()) == std::string::npos;
}

std::vector<GitDirectory> follow(FdRef top)
{
    std::vector<GitDirectory> found;
    const std::string text = without_line_end(read_small(top, ".git"));
    const std::size_t prefix = std::char_traits<char>::length(link_prefix);
    if (text.compare(0, prefix, link_prefix) != 0 || text.size() == prefix) return found;
    found.push_back(open_git_directory(top, text.substr(prefix)));
    GitDirectory &own = found.back();
    if (!own.directory) return found;
    if (own.problem.empty() && defence_is_on("git-back-link") && !names_back(top, own.directory))
        own.problem = "it does not name this directory in turn";
    const std::string common = without_line_end(read_small(own.directory, "commondir"));
    if (common.empty()) {
        if (own.problem.empty() && defence_is_on("git-directory") && !is_git_directory(own.directory)) own.problem = not_gits;
        return found;
    }
    GitDirectory shared = open_git_directory(own.directory, common);
    if (shared.problem.empty()) shared.problem = own.problem;
    if (shared.problem.empty() && defence_is_on("git-back-link") && !lies_in_worktrees_of(own.directory, shared.directory))
        shared.problem = "it does not hold the worktree's own";
    if (shared.problem.empty() && defence_is_on("git-directory") && !is_git_directory(shared.directory)) shared.problem = not_gits;
    if (own.problem.empty()) own.problem = shared.problem; // a worktree's part is believed only with the shared directory
    found.push_back(std::move(shared));
    return found;
}

constexpr std::size_t filters_limit = 10;

struct OwnSettings {
    std::optional<bool> signs_commits;
    std::optional<bool> signs_tags;
    std::string format;
    std::string key;
    std::set<std::string> filters;
};

OwnSettings own_settings(const std::string &config)
{
    OwnSettings own;
    for (const auto &[name, value] : parse_git_settings(config).list) {
        if (name == "commit.gpgsign") own.signs_commits = git_truth(value);
        if (name == "tag.gpgsign") own.signs_tags = git_truth(value);
        if (name == "gpg.format") own.format = value.value_or("");
        if (name == "user.signingkey") own.key = value.value_or("");
        if (name.starts_with("filter.")) own.filters.emplace(git_subsection(name));
    }
    return own;
}

std::string repository_text(const GuardedTree &tree, const std::string &repository, const GuardedTree *git_directory,
                            const std::string &name)
{
    const auto text = git_directory != nullptr ? small_text(*git_directory, "", name) : shared_git_text(tree, repository, name);
    return text.value_or("");
}

// A file that cannot be read asks for nothing: git inside cannot read it either.
RepositorySettings settings_of(const GitPlace &place)
{
    if (!place.repository) return {};
    try {
        return read_repository_settings(place.shown, *place.repository, place.below, place.git_directory ? &*place.git_directory : nullptr);
    } catch (const Failure &) {
        return {};
    }
}

const char *words_for(GitSigning signing)
{
    return signing == GitSigning::of_repository ? "this repository's settings sign commits" : "your git signs commits";
}

// As git looks at it (safe.directory in git-config(1)).
bool owns_repository(const Account &account, const GitPlace &place)
{
    if (!place.repository) return false;
    const UniqueFd top = find_beneath(place.shown.top, *place.repository, O_PATH | O_DIRECTORY);
    const UniqueFd git = top ? find_beneath(top, ".git", O_PATH) : UniqueFd();
    const auto is_own = [&](const UniqueFd &fd) { return fd && stat_of(fd).st_uid == account.uid.value(); };
    return is_own(top) && is_own(git);
}

} // namespace

Repository find_repository(FdRef cwd)
{
    UniqueFd current = open_at(cwd, ".", O_PATH | O_DIRECTORY);
    for (std::size_t level = 0; current && level < repository_levels_limit; ++level) {
        struct stat facts {};
        if (fstatat(current.get(), ".git", &facts, AT_SYMLINK_NOFOLLOW) == 0) {
            Repository repository{std::move(current), 0, {}};
            repository.mount = mount_id(repository.top);
            if (S_ISREG(facts.st_mode)) repository.elsewhere = follow(repository.top);
            if (S_ISLNK(facts.st_mode))
                repository.elsewhere.push_back({open_at(repository.top, ".git", O_PATH | O_DIRECTORY), 0, ".git", "a symlink leads to it"});
            for (auto &place : repository.elsewhere)
                if (place.directory) place.mount = mount_id(place.directory);
            return repository;
        }
        UniqueFd above = open_at(current, "..", O_PATH | O_DIRECTORY);
        if (!above || is_same_file(stat_of(above), stat_of(current))) return {};
        current = std::move(above);
    }
    return {};
}

std::vector<std::string> filters_of_attributes(std::string_view text)
{
    constexpr std::string_view filter = "filter=";
    std::set<std::string> names;
    for (const std::string_view line : split(text, '\n')) {
        if (line.starts_with('#')) continue;
        for (std::size_t at = line.find(filter); at != std::string_view::npos; at = line.find(filter, at + 1)) {
            if (at == 0 || (line[at - 1] != ' ' && line[at - 1] != '\t')) continue;
            const std::string_view rest = line.substr(at + filter.size());
            names.emplace(rest.substr(0, rest.find_first_of(" \t\r")));
        }
    }
    names.erase("");
    return {names.begin(), names.end()};
}

RepositorySettings read_repository_settings(const GuardedTree &tree, const std::string &repository, const std::string &below,
                                            const GuardedTree *git_directory)
{
    const OwnSettings own = own_settings(repository_text(tree, repository, git_directory, "config"));
    RepositorySettings found;
    found.signs = own.signs_commits ? own.signs_commits : own.signs_tags;
    if (own.signs_tags.value_or(false)) found.signs = true;
    // A key in the project itself also exists inside.
    if (own.format == "ssh" && !own.key.empty() && find_shown(tree, repository, own.key).kind == ShownPath::Kind::other)
        found.signs = false;
    std::set<std::string> names;
    const auto add = [&](const std::string &text) {
        for (auto &name : filters_of_attributes(text))
            if (!own.filters.contains(name)) names.insert(std::move(name));
    };
    add(repository_text(tree, repository, git_directory, "info/attributes"));
    for (std::string directory = below; is_within("/" + directory, "/" + repository); directory = split_last(directory).first) {
        add(small_text(tree, directory, ".gitattributes").value_or(""));
        if (directory == repository || directory.empty()) break;
    }
    found.filters.assign(names.begin(), names.end());
    found.filters.resize(std::min(found.filters.size(), filters_limit));
    return found;
}

GitOfUser find_for_session(const AsUser &user, const Account &account, const GitPlace &place, const AgentPlaces &agents, Deadline deadline)
{
    const UniqueFd here = find_beneath(place.shown.top, place.below, O_PATH | O_DIRECTORY);
    if (!here || fchdir(here.get()) != 0) throw_errno("entering the working directory");
    FoundIdentity found = find_git_identity(user, UserPaths(agents), account.home, place.shown.path, deadline, settings_of(place));
    if (!place.trusted.empty() && owns_repository(account, place)) found.identity.safe_directories.push_back(place.trusted);
    GitOfUser answer{git_identity_text(found.identity), git_signing_text(found.identity), {}, found.problem};
    for (auto &[name, content] : found.identity.files)
        answer.files[copied_git_file(name)] = std::move(content);
    for (const auto &notice : found.notices)
        answer.notices.always.push_back("git: " + notice);
    for (const auto &notice : found.once)
        answer.notices.once.push_back("git: " + notice);
    answer.notices.unsigned_for = found.signing;
    if (found.signing != GitSigning::none)
        answer.unsigned_notice = std::string("git: ") + words_for(found.signing) +
                                 ", and a session has no key of yours: the agent's commits are not signed; sign them outside before you "
                                 "push (git rebase --exec 'git commit --amend --no-edit --gpg-sign' UPSTREAM)";
    return answer;
}

} // namespace pi_agent
