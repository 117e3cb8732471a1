// Files of a project that run code later, by the table of doors.toml, and looking at git directories.
#include "common/as_user/doors.hpp"
#include "common/as_user/git_syntax.hpp"
#include "wrapper/aftermath.hpp"

#include <dirent.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

constexpr int depth_limit = 64;                           // of a package.json
constexpr std::size_t read_limit = std::size_t{1} << 20U; // bytes

// A pattern of a row: its first component, and what is below that.
struct DoorPattern {
    const Door *door;
    std::string_view first, below;
};

// By their first component, and those where that has a star.
struct DoorPatterns {
    std::unordered_multimap<std::string_view, DoorPattern> by_name;
    std::vector<DoorPattern> any_name;
};

std::pair<std::string_view, std::string_view> split_first(std::string_view path)
{
    const std::size_t slash = std::min(path.find('/'), path.size());
    return {path.substr(0, slash), path.substr(std::min(slash + 1, path.size()))};
}

const DoorPatterns &door_patterns()
{
    static const auto table = [] {
        DoorPatterns made;
        for (const auto &door : door_table) {
            if (door.what.empty()) continue;
            for (const auto path : split(door.paths, ' ')) {
                const DoorPattern pattern{&door, split_first(path).first, split_first(path).second};
                if (pattern.first.find('*') == std::string_view::npos)
                    made.by_name.emplace(pattern.first, pattern);
                else
                    made.any_name.push_back(pattern);
            }
        }
        return made;
    }();
    return table;
}

bool matches(std::string_view component, std::string_view name)
{
    const std::size_t star = component.find('*');
    return name.size() >= component.size() - 1 && name.starts_with(component.substr(0, star)) && name.ends_with(component.substr(star + 1));
}

bool has_one_of(std::string_view text, std::string_view words)
{
    const auto list = split(words, ' ');
    return text.find('\\') != std::string_view::npos ||
           std::any_of(list.begin(), list.end(), [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

void mark_with_words(Marker &marker, const std::string &path, const Door &door)
{
    if (!door.words.empty()) {
        const auto facts = marker.tree().look(path, Links::follow);
        const bool is_short = facts && S_ISREG(facts->st_mode) && static_cast<std::size_t>(facts->st_size) < read_limit;
        if (is_short && !has_one_of(marker.tree().read(path, read_limit).value_or("\\"), door.words)) return;
    }
    marker.file(path, std::string(door.what));
}

// What a row's pattern names at and below a path.
void mark_matches(Marker &marker, const Door &door, const std::string &path, std::string_view below)
{
    const auto [first, rest] = split_first(below);
    if (first.empty()) return mark_with_words(marker, path, door);
    if (first.find('*') == std::string_view::npos) return mark_matches(marker, door, join_path(path, first), rest);
    for (const auto &entry : marker.entries(path))
        if (matches(first, entry.name) && (entry.type != DT_DIR || !rest.empty()))
            mark_matches(marker, door, join_path(path, entry.name), rest);
}

void mark_package_scripts(Marker &marker, const std::string &path)
{
    const auto facts = marker.tree().look(path, Links::follow);
    if (!facts || !S_ISREG(facts->st_mode)) return;
    if (static_cast<std::size_t>(facts->st_size) > read_limit) return marker.whole(path, "package scripts", *facts);
    const PackageScripts scripts = read_package_scripts(marker.tree().read(path, read_limit).value_or(""));
    marker.part(path, "package scripts", *facts, scripts.text, scripts.run_at_install ? Appearing::counts : Appearing::is_ordinary);
}

constexpr std::size_t small_limit = 4096; // of a file that holds a path
constexpr unsigned nesting_limit = 16;    // of submodules and includes

std::string path_in_git_file(const std::string &text)
{
    constexpr std::string_view begin = "gitdir: ";
    return text.starts_with(begin) ? without_line_end(text.substr(begin.size())) : "";
}

// What `git worktree` and `git submodule` make: such a directory is searched together with the repository around it.
bool is_part_of_a_repository(const std::string &gitdir)
{
    const std::string path = "/" + gitdir;
    const std::string_view from_git = std::string_view(path).substr(std::min(path.find("/.git/"), path.size()));
    return from_git.starts_with("/.git/worktrees/") || from_git.starts_with("/.git/modules/");
}

// The lines with which git runs a program, as it finds them.
std::string commands_of_todo(const std::string &text)
{
    constexpr const char *blank = " \t\r";
    std::string commands;
    for (const auto part : split(text, '\n')) {
        const std::string line(part);
        const std::size_t begin = std::min(line.find_first_not_of(blank), line.size());
        const std::string word = line.substr(begin, line.find_first_of(blank, begin) - begin);
        if (word == "exec" || word == "x") commands += line.substr(begin) + "\n";
    }
    return commands;
}

} // namespace

// The table of files, and how each is looked at.

void mark_file_doors(Marker &marker, const std::string &directory, std::string_view name)
{
    if (name == "package.json") return mark_package_scripts(marker, join_path(directory, name));
    const auto mark = [&](const DoorPattern &pattern) {
        const std::string_view beside = pattern.door->beside;
        if (beside.empty() || marker.tree().look(join_path(directory, beside), Links::refuse))
            mark_matches(marker, *pattern.door, join_path(directory, name), pattern.below);
    };
    const auto [begin, end] = door_patterns().by_name.equal_range(name);
    for (auto found = begin; found != end; ++found)
        mark(found->second);
    for (const auto &pattern : door_patterns().any_name)
        if (matches(pattern.first, name)) mark(pattern);
}

PackageScripts read_package_scripts(std::string_view json)
{
    // Its parser does not recurse, but what writes JSON does.
    if (nests_deeper(json, depth_limit)) return {"nested too deep to be read", true}; // npm itself may read it
    const auto package = nlohmann::json::parse(json, nullptr, false);
    if (!package.is_object()) return {};
    PackageScripts found;
    for (const char *key : {"scripts", "husky", "simple-git-hooks", "pre-commit", "lint-staged"})
        if (package.contains(key))
            found.text += std::string(key) + "=" + package[key].dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
    for (const char *key : {"preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"})
        found.run_at_install =
            found.run_at_install || (package.contains("scripts") && package["scripts"].is_object() && package["scripts"].contains(key));
    return found;
}

// Looking at git directories. Every path is one that git itself would open.

// A path from git's configuration and files, if it is in the tree.
std::optional<std::string> RepositoryDoors::beneath(const std::string &text, const std::string &base) const
{
    if (text.empty()) return std::nullopt;
    std::string path = text;
    if (path.compare(0, 2, "~/") == 0) path = home_ + path.substr(1);
    if (path[0] != '/') path = marker_.tree().absolute(base) + "/" + path;
    return marker_.tree().below(normal_path(path));
}

void RepositoryDoors::worktree(const std::string &directory, unsigned char type_of_git)
{
    const std::string path = join_path(directory, ".git");
    if (type_of_git == DT_REG) return git_file(path, directory);
    if (type_of_git == DT_LNK) marker_.file(path, "link to a git directory");
    repository(path, directory, 0);
}

void RepositoryDoors::git_file(const std::string &path, const std::string &directory)
{
    const std::string named = path_in_git_file(marker_.tree().read(path, small_limit).value_or(""));
    const auto gitdir = beneath(named, directory);
    if (!gitdir || !is_part_of_a_repository(*gitdir)) marker_.file(path, ".git file that points elsewhere");
    marker_.other_names(path, ".git file");
    if (gitdir) repository(*gitdir, directory, 0);
}

void RepositoryDoors::embedded(const std::string &directory)
{
    if (const auto facts = marker_.tree().look(directory, Links::follow)) marker_.part(directory, "embedded bare repository", *facts, "");
    repository(directory, std::nullopt, 0);
}

void RepositoryDoors::repository(const std::string &gitdir, const std::optional<std::string> &worktree, unsigned depth)
{
    if (depth > nesting_limit || marker_.tree().budget().is_spent() || !seen_.insert(gitdir).second) return;
    std::string hooks_path;
    for (const char *name : {"config", "config.worktree"}) {
        if (const std::string configured = configuration(join_path(gitdir, name), 0); !configured.empty()) hooks_path = configured;
    }
    hooks(join_path(gitdir, "hooks"), 0);
    if (worktree) hook_managers(join_path(gitdir, "hooks"), *worktree);
    if (const auto configured = beneath(hooks_path, worktree.value_or(gitdir))) {
        hooks(*configured, 0);
        if (worktree) hook_managers(*configured, *worktree);
    }
    const std::string attributes = join_path(gitdir, "info/attributes");
    if (marker_.tree().read(attributes, small_limit).value_or("") != placeholder_comment) marker_.file(attributes, "git attributes");
    marker_.other_names(attributes, "git attributes");
    const std::string common = join_path(gitdir, "commondir");
    const std::string leads_to = marker_.tree().read(common, small_limit).value_or("");
    // What git itself writes for a linked worktree. Elsewhere, git would take its configuration from the directory two above.
    const bool is_gits_own = join_path("", parent_of(gitdir)).ends_with("/worktrees") && without_line_end(leads_to) == "../..";
    if (!is_gits_own && leads_to != placeholder_commondir) marker_.file(common, "commondir that points elsewhere");
    marker_.other_names(common, "commondir");
    unfinished(gitdir);
    modules(join_path(gitdir, "modules"), depth + 1);
    linked_worktrees(join_path(gitdir, "worktrees"), depth + 1);
}

// What a command that goes on with something takes up: `exec` in the list of a rebase (git-rebase(1)), and paths of a bisection, which
// git's script gave to a shell for long.
void RepositoryDoors::unfinished(const std::string &gitdir)
{
    for (const char *name : {"rebase-merge/git-rebase-todo", "sequencer/todo", "rebase-apply/git-rebase-todo"}) {
        const std::string path = join_path(gitdir, name);
        const auto facts = marker_.tree().look(path, Links::refuse);
        if (!facts) continue;
        if (S_ISLNK(facts->st_mode)) marker_.file(path, "list of an unfinished rebase that is a link");
        if (static_cast<std::size_t>(facts->st_size) > read_limit) marker_.whole(path, "list of an unfinished rebase", *facts);
        const std::string commands = commands_of_todo(marker_.tree().read(path, read_limit).value_or(""));
        if (!commands.empty()) marker_.part(path, "command in the list of an unfinished rebase", *facts, commands);
    }
    const std::string bisection = join_path(gitdir, "BISECT_NAMES");
    if (!without_line_end(marker_.tree().read(bisection, small_limit).value_or("")).empty())
        marker_.file(bisection, "paths of an unfinished bisection");
}

// Marks the settings that run code, and those of files in the tree that it includes. Returns core.hooksPath.
std::string RepositoryDoors::configuration(const std::string &path, unsigned depth)
{
    const auto facts = marker_.tree().look(path, Links::refuse);
    if (!facts || depth > nesting_limit) return "";
    if (S_ISLNK(facts->st_mode)) marker_.file(path, "git configuration that is a link");
    const auto behind = marker_.tree().look(path, Links::follow);
    if (!behind) return "";
    const auto text = marker_.tree().read(path, read_limit);
    if (!text || static_cast<std::size_t>(behind->st_size) > read_limit) {
        marker_.whole(path, "git configuration that cannot be read", *behind);
        return "";
    }
    marker_.other_names(path, "git configuration");
    const GitSettings settings = parse_git_settings(*text);
    if (!settings.is_valid) marker_.part(path, "git configuration with a mistake", *behind, *text);
    const std::string directory = path.find('/') == std::string::npos ? "" : path.substr(0, path.rfind('/'));
    std::map<std::string, std::string> found;
    std::string hooks_path;
    for (const auto &setting : settings.list) {
        if (!runs_code(setting)) continue;
        const std::string value = setting.value.value_or("");
        if (setting.name == "core.worktree" && beneath(value, directory)) continue; // every submodule has one
        found[setting.name] += (setting.value ? "=" : "") + value + '\0';
        if (setting.name == "core.hookspath") hooks_path = value;
        const bool includes =
            setting.name == "include.path" || (setting.name.compare(0, 10, "includeif.") == 0 && setting.name.ends_with(".path"));
        if (!includes) continue;
        if (const auto included = beneath(value, directory); included && seen_.insert("include " + *included).second) {
            if (const std::string theirs = configuration(*included, depth + 1); !theirs.empty()) hooks_path = theirs;
        }
    }
    for (auto &[name, values] : found)
        marker_.part(path, "git setting " + name, *behind, std::move(values));
    return hooks_path;
}

void RepositoryDoors::hooks(const std::string &directory, unsigned depth)
{
    const auto facts = marker_.tree().look(directory, Links::refuse);
    if (!facts) return;
    if (S_ISLNK(facts->st_mode)) marker_.file(directory, "link to a directory of git hooks");
    for (const auto &entry : marker_.entries(directory)) {
        const std::string path = join_path(directory, entry.name);
        if (entry.type == DT_DIR) {
            if (depth == 0) hooks(path, 1); // pre-commit.d, husky's _
        } else if (!entry.name.ends_with(".sample")) {
            marker_.file(path, "git hook");
            marker_.other_names(path, "git hook");
        }
    }
}

// Programs that a hook starts, and that take their commands from a file of the project.
void RepositoryDoors::hook_managers(const std::string &hooks, const std::string &worktree)
{
    constexpr std::pair<const char *, std::string_view> managers[] = {
        {"pre-commit", ".pre-commit-config.yaml"},
        {"lefthook", "lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml lefthook-local.yml"},
        {"overcommit", ".overcommit.yml"},
    };
    for (const auto &entry : marker_.tree().list(hooks, Links::follow).entries) {
        if (entry.type == DT_DIR || entry.name.ends_with(".sample")) continue;
        const std::string text = marker_.tree().read(join_path(hooks, entry.name), read_limit).value_or("");
        for (const auto &[word, files] : managers)
            if (text.find(word) != std::string::npos)
                for (const auto file : split(files, ' '))
                    marker_.file(join_path(worktree, file), "file that a git hook runs");
    }
}

// Their names are paths: a directory without HEAD leads to others.
void RepositoryDoors::modules(const std::string &directory, unsigned depth)
{
    if (depth > nesting_limit || marker_.tree().budget().is_spent()) return;
    for (const auto &entry : marker_.entries(directory)) {
        const std::string path = join_path(directory, entry.name);
        if (entry.type != DT_DIR && entry.type != DT_LNK) continue;
        if (entry.type == DT_LNK) marker_.file(path, "link to a git directory");
        if (marker_.tree().look(path + "/HEAD", Links::refuse))
            repository(path, std::nullopt, depth + 1);
        else
            modules(path, depth + 1);
    }
}

void RepositoryDoors::linked_worktrees(const std::string &directory, unsigned depth)
{
    for (const auto &entry : marker_.entries(directory))
        if (entry.type == DT_DIR || entry.type == DT_LNK) repository(join_path(directory, entry.name), std::nullopt, depth + 1);
}

} // namespace pi_agent
