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
constexpr const char *linked = "a symlink leads to it, which an agent could have made; only a session that shows the whole root "
                               "(projects.scope: root) has what is in it";

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
    if (const std::string link = without_line_end(read_small(directory, "gitdir")); !link.empty()) { // of a worktree: its `.git` file
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
    std::optional<bool> signs_commits, signs_tags;
    std::string format, key;
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
    const auto directory = git_directory != nullptr ? std::string() : shared_git_directory(tree, repository);
    const auto text = directory ? small_text(git_directory != nullptr ? *git_directory : tree, *directory, name) : std::nullopt;
    return text.value_or("");
}

// What of a repository's data a session's git does not have or cannot change, a line each. Agents may have written all of it: the lines
// name paths, and nothing is shown for them.
class MissingGitData {
public:
    explicit MissingGitData(const GitPlace &place) : place_(place), tree_(place.git_directory ? *place.git_directory : place.shown) {}

    std::vector<std::string> name()
    {
        const auto directory = place_.git_directory ? std::string() : shared_git_directory(place_.shown, *place_.repository);
        if (!directory) return {}; // root has told why it is not shown (runner/root/errand/receiver.cpp)
        directory_ = *directory;
        look_at_links();
        look_at_alternates();
        look_at_references();
        return std::move(notices_);
    }

private:
    [[nodiscard]] bool is_missing(const std::string &path) const
    {
        const ShownPath end = find_shown(tree_, directory_, path);
        if (end.kind != ShownPath::Kind::outside) return end.kind == ShownPath::Kind::hidden;
        return !place_.is_there || !place_.is_there(path_of(path));
    }

    [[nodiscard]] std::string path_of(const std::string &path) const
    {
        return resolved_by_text(path.front() == '/' ? path : join_path(join_path(tree_.path, directory_), path));
    }

    [[nodiscard]] std::string shown_name(const char *name) const
    {
        return escape_for_display(join_path(join_path(tree_.path, directory_), name));
    }

    // As the tool `repo` lays working trees out.
    void look_at_links()
    {
        for (const char *name : {"HEAD", "objects", "refs"}) {
            if (!is_missing(name)) continue;
            notices_.push_back(shown_name(name) + " is a link out of what the session shows, so git finds no repository; an agent could " +
                               "have made that link, and it is not followed: start without --pi-agent-scope=project, or ask the " +
                               "administrator to show a root that holds the whole layout (projects.scope: root)");
            return;
        }
    }

    void look_at_alternates()
    {
        const std::string text = small_text(tree_, directory_, alternates).value_or("");
        for (const std::string_view line : split(text, '\n')) {
            if (line.empty() || line.front() == '#') continue;
            const std::string path = line.front() == '/' ? std::string(line) : "objects/" + std::string(line);
            if (!is_missing(path)) continue;
            notices_.push_back("this repository borrows objects from " + escape_for_display(path_of(path)) + " (" + shown_name(alternates) +
                               "), which a session does not have, so git fails there (\"bad object\"); outside, copy them in with 'git "
                               "repack -a -d' and then remove that file, or ask the administrator to show the other repository "
                               "(users.NAME.readable)");
            if (notices_.size() >= 3) return;
        }
    }

    // Git takes the placeholder `commondir` for the mark of a worktree, and looks for its references elsewhere. A worktree has its own.
    void look_at_references()
    {
        const std::string link = small_text(place_.shown, *place_.repository, ".git").value_or("");
        if (!place_.is_guarded || link.find("/worktrees/") != std::string::npos) return;
        const std::string config = small_text(tree_, directory_, "config").value_or("");
        for (const auto &[name, value] : parse_git_settings(config).list)
            if (name == "extensions.refstorage" && lower_case(value.value_or("")) == "reftable")
                return notices_.push_back(
                    "this repository keeps its references as reftable: while a session runs, no commit works in its main working "
                    "tree, inside or outside (\"cannot lock references\"); work in a worktree (git worktree add), or convert it "
                    "outside (git refs migrate --ref-format=files)");
    }

    static constexpr const char *alternates = "objects/info/alternates";
    const GitPlace &place_;
    const GuardedTree &tree_;
    std::string directory_; // git's, in the tree
    std::vector<std::string> notices_;
};

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

// The part of the pattern that counts below `repository` (gitignore(5)); empty where no path there fits.
std::string ignored_below(const std::string &pattern, const std::string &repository)
{
    std::string rest = pattern;
    for (const auto &name : path_components(repository)) {
        const std::size_t slash = rest.find('/');
        if (slash == std::string::npos || !is_masked_by(rest.substr(0, slash), name)) return "";
        rest.erase(0, slash + 1);
    }
    return "/" + rest;
}

// For fnmatch(3) and a policy, two '*' are one, and no first byte and no space at the end has a meaning.
std::string ignore_line(std::string pattern)
{
    for (std::size_t at = pattern.find("**"); at != std::string::npos; at = pattern.find("**", at))
        pattern.erase(at, 1);
    if (pattern.ends_with(' ')) pattern.insert(pattern.size() - 1, "\\");
    return (pattern.starts_with('#') || pattern.starts_with('!') ? "\\" : "") + pattern + "\n";
}

// Git cannot read a masked file, and `git add --all` would fail. It is added to the user's own, so that one setting names both.
void ignore_masked(const GitPlace &place, FoundIdentity &found)
{
    const std::string lines = ignored_for_masks(place);
    if (lines.empty()) return;
    constexpr const char *setting = "core.excludesfile";
    const auto &settings = found.identity.settings; // a copy would replace the file of the project that the user named
    const bool is_named = std::any_of(settings.begin(), settings.end(), [](const GitSetting &one) { return one.name == setting; });
    std::string own = found.identity.files.contains(setting) ? found.identity.files[setting] : "";
    if (is_named || own.size() + lines.size() >= git_file_copy_limit)
        return found.notices.push_back("your own core.excludesFile leaves no room for what the policy masks (projects.mask), so 'git add "
                                       "--all' may fail; name those files in it");
    own += (own.empty() || own.ends_with('\n') ? "" : "\n") + lines;
    found.identity.files[setting] = std::move(own);
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

std::vector<std::string> missing_git_data(const GitPlace &place)
{
    if (!place.repository) return {};
    try {
        return MissingGitData(place).name();
    } catch (const Failure &) { // the search for what is protected reads the same files, and reports it
        return {};
    }
}

std::string ignored_for_masks(const GitPlace &place)
{
    std::string lines;
    for (const auto &pattern : place.masks) {
        std::set<std::string> ignored{pattern};
        if (pattern.find('/') != std::string::npos) {
            const std::string repository = place.repository.value_or("");
            ignored = {ignored_below(pattern, repository), ignored_below(pattern, join_path(place.inside, repository))};
        }
        for (const auto &one : ignored)
            if (!one.empty()) lines += ignore_line(one);
    }
    return lines;
}

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
                repository.elsewhere.push_back({open_at(repository.top, ".git", O_PATH | O_DIRECTORY), 0, ".git", linked});
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
    ignore_masked(place, found);
    for (auto &notice : missing_git_data(place))
        found.once.insert(found.once.begin(), std::move(notice));
    found.notices.resize(std::min(found.notices.size(), git_notice_limit));
    found.once.resize(std::min(found.once.size(), git_notice_limit));
    GitOfUser answer{git_identity_text(found.identity), git_signing_text(found.identity), {}, found.problem};
    for (auto &[name, content] : found.identity.files)
        answer.files[copied_git_file(name)] = std::move(content);
    for (const auto &notice : found.notices)
        answer.notices.always.push_back("git: " + notice);
    for (const auto &notice : found.once)
        answer.notices.once.push_back("git: " + notice);
    answer.notices.unsigned_for = found.signing;
    if (found.signing != GitSigning::none)
        answer.unsigned_notice =
            std::string("git: ") +
            (found.signing == GitSigning::of_repository ? "this repository's settings sign commits" : "your git signs commits") +
            ", and a session has no key of yours: the agent's commits are not signed; sign them outside before you "
            "push (git rebase --exec 'git commit --amend --no-edit --gpg-sign' UPSTREAM)";
    return answer;
}

} // namespace pi_agent
