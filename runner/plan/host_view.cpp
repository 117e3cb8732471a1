// What of the host a session sees, and which places and files the caller's shell and arguments name.
#include "runner/plan/host_view.hpp"

#include "common/base/build_settings.hpp"

#include <climits>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

namespace pi_agent {

namespace {

constexpr std::string_view etc_directories[] = {
#include "runner/etc_directories.inc"
};

// `pattern` and `path` are below /etc.
ShownOfEtc shown_by_pattern(const std::string &path, const std::string &pattern)
{
    if (fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME | FNM_LEADING_DIR) == 0) return ShownOfEtc::whole; // the path, or what holds it
    for (std::size_t slash = pattern.find('/'); slash != std::string::npos; slash = pattern.find('/', slash + 1))
        if (fnmatch(pattern.substr(0, slash).c_str(), path.c_str(), FNM_PATHNAME) == 0) return ShownOfEtc::way;
    return ShownOfEtc::nothing;
}

bool has_one_component(const std::string &path)
{
    return path.rfind('/') == 0;
}

constexpr std::size_t name_limit = 64;

bool fits_a_line(const std::string &text)
{
    return !text.empty() &&
           std::none_of(text.begin(), text.end(), [](char byte) { return byte == ':' || static_cast<unsigned char>(byte) < ' '; });
}

std::optional<std::string> path_inside(const std::vector<ShownAs> &trees, const std::string &path)
{
    for (const auto &[outside, inside] : trees)
        if (is_within(path, outside)) return inside + path.substr(outside.size());
    return std::nullopt;
}

// A directory or program at an absolute path. A `..` is refused: it could follow a symlink.
std::optional<std::string> place_inside(const PlacesInside &places, std::string_view path)
{
    if (path.substr(0, 1) != "/" || path.find("/..") != std::string_view::npos) return std::nullopt;
    const std::string plain = resolved_by_text(path);
    for (const auto *trees : {&places.work, &places.toolchains})
        if (auto inside = path_inside(*trees, plain)) return inside;
    const std::vector<std::string> own = system_path(); // on NixOS symlinks to what is shown
    const bool shown = is_shown(places.view, plain) || std::find(own.begin(), own.end(), plain) != own.end();
    return shown ? std::optional(plain) : std::nullopt;
}

std::vector<std::string> judge_path(const PlacesInside &places, std::string_view value)
{
    std::vector<std::string> path;
    for (const auto directory : split(value, ':')) {
        auto inside = place_inside(places, directory);
        if (!inside && !defence_is_on("shell-places")) inside = std::string(directory);
        if (inside && std::find(path.begin(), path.end(), *inside) == path.end()) path.push_back(std::move(*inside));
    }
    return path;
}

// A variable of git's: a relative path counts from the working directory, and stays as it is.
std::optional<std::string> judge_of_git(const PlacesInside &places, std::string_view value)
{
    const std::string &project = places.work.front().first;
    const bool absolute = value.substr(0, 1) == "/";
    const std::string whole = (absolute ? "" : project + "/" + places.below + "/") + std::string(value);
    if (leads_above(whole, 0)) return std::nullopt;
    const std::string plain = resolved_by_text(whole);
    if (!absolute) return is_within(plain, project) ? std::optional(std::string(value)) : std::nullopt;
    return path_inside(places.work, plain);
}

// GIT_ALTERNATE_OBJECT_DIRECTORIES is a list; a path with a colon in it would have to be quoted there.
std::optional<std::string> judge_list_of_git(const PlacesInside &places, std::string_view value)
{
    std::string list;
    for (const auto one : split(value, ':')) {
        const auto inside = judge_of_git(places, one);
        if (!inside) return std::nullopt;
        list += (list.empty() ? "" : ":") + *inside;
    }
    return list;
}

// The program is the first word, as programs that start an editor read it. A name without a slash is looked up along PATH. Inside, the
// agent's home and the user's toolchains have programs, too, at which root does not look.
void judge_editor(const PlacesInside &places, const std::string &name, std::string_view value, ShellPlaces &judged)
{
    constexpr const char *remedy = "; name one of the host's, for example in ~/.pi/agent/env";
    const std::size_t end = std::min(value.find_first_of(" \t"), value.size());
    const std::string program(value.substr(0, end));
    const std::string shown = name + "=" + escape_for_display(value);
    if (program.substr(0, 1) == "/") {
        const auto inside = place_inside(places, program);
        if (inside)
            judged.presentation.push_back(name + "=" + *inside + std::string(value.substr(end)));
        else
            judged.notices.push_back(shown + " is not passed on: a session does not see that program" + remedy);
        return;
    }
    judged.presentation.push_back(name + "=" + std::string(value));
    if (!program.empty() && program.find('/') == std::string::npos && !places.has_program(program))
        judged.notices.push_back(shown +
                                 ": the host has no program of that name where every session sees it, so the agent's Ctrl+G and git find "
                                 "it only where the agent's home, the project or a toolchain has one" +
                                 remedy);
}

struct FileOption {
    std::string_view name;
    NamedAs next; // what the next argument is
};
constexpr FileOption file_options[] = {
#include "runner/file_options.inc"
};
// The next argument names no file that is read.
constexpr std::string_view value_options[] = {
#include "runner/value_options.inc"
};
// As the first argument: all that follow belong to it.
constexpr std::string_view pi_commands = "install remove uninstall update list config auth";
constexpr char file_prefix = '@'; // of an argument that is a file by itself

std::optional<NamedAs> named_after(const std::string &option)
{
    const auto *const found =
        std::find_if(std::begin(file_options), std::end(file_options), [&](const FileOption &one) { return one.name == option; });
    return found == std::end(file_options) ? std::nullopt : std::optional(found->next);
}

} // namespace

bool is_shown_by(View view, std::string_view path)
{
    const auto is_in = [&](std::string_view tree) { return is_within(path, tree); };
    if (std::any_of(program_trees.begin(), program_trees.end(), is_in)) return true;
    if (std::any_of(package_data.begin(), package_data.end(), is_in)) return true;
    if (view == View::host) return is_within(path, "/etc");
    constexpr std::string_view etc = "/etc/";
    return path.starts_with(etc) && shown_of_etc(path.substr(etc.size())) == ShownOfEtc::whole;
}

ShownOfEtc shown_of_etc(std::string_view path)
{
    const std::string named(path);
    ShownOfEtc shown = ShownOfEtc::nothing;
    for (const std::string_view pattern : etc_directories)
        shown = std::max(shown, shown_by_pattern(named, std::string(pattern)));
    const bool is_for_launcher = has_test_seams && is_within(path, "pi-agent"); // common/seams/seams.cpp
    return is_for_launcher ? ShownOfEtc::whole : shown;
}

std::string tree_of_program(const std::string &path)
{
    const std::size_t modules = path.find("/node_modules/");
    const std::string directory = parent_of(path);
    const bool in_bin = directory.size() > 4 && directory.ends_with("/bin");
    std::string tree = modules != std::string::npos && modules > 0 ? path.substr(0, modules) : in_bin ? parent_of(directory) : directory;
    if (!has_one_component(tree)) return tree;
    if (modules != std::string::npos) return path.substr(0, path.find('/', modules + 1));
    return has_one_component(directory) ? path : directory;
}

std::string interpreter_of(std::string_view first_bytes)
{
    if (first_bytes.substr(0, 2) != "#!") return {};
    const std::string_view line = first_bytes.substr(2, first_bytes.find('\n') - 2);
    const std::size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos || line[start] != '/') return {};
    return std::string(line.substr(start, line.find_first_of(" \t", start) - start));
}

bool is_shown(const HostView &view, const std::string &path)
{
    return is_shown_by(view.view, path) ||
           std::any_of(view.trees.begin(), view.trees.end(), [&](const std::string &tree) { return is_within(path, tree); });
}

std::map<std::string, PointKind> plan_points(const std::vector<std::string> &read_only, const std::vector<std::string> &kept,
                                             std::size_t most)
{
    std::map<std::string, PointKind> points;
    const auto keep = [&](const std::string &path) {
        if (!path.empty() && defence_is_on("protect-prefixes")) points.emplace(path, PointKind::prefix);
    };
    const auto keep_above = [&](const std::string &path) {
        for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
            keep(path.substr(0, slash));
    };
    for (const auto &path : kept) {
        keep_above(path);
        keep(path);
    }
    for (const auto &path : read_only) {
        keep_above(path);
        points[path] = PointKind::read_only;
    }
    // Paths beneath a path come after it, but not at once: "a", "a-b", "a/b".
    for (const auto &path : read_only)
        for (auto next = points.lower_bound(path + "/"); next != points.end() && next->first.starts_with(path + "/");)
            next = points.erase(next);
    if (points.size() > most)
        throw Failure(FailureKind::too_large, "limit: protecting and masking paths of the project needs " + std::to_string(points.size()) +
                                                  " mounts, and at most " + std::to_string(most) +
                                                  " are possible; remove worktrees and submodules that you do not need, or ask the "
                                                  "administrator to protect or mask fewer paths (projects.protect, projects.mask)");
    return points;
}

std::string alias_of(const std::string &project_path)
{
    std::string name = project_path.substr(project_path.rfind('/') + 1, name_limit); // npos + 1 is 0
    std::replace_if(
        name.begin(), name.end(),
        [](char byte) {
            return !is_made_of({&byte, 1}, "._-");
        },
        '_');
    std::string alias(name.empty() || name[0] == '.' || name[0] == '-' ? 1 : 0, '_');
    std::uint64_t hash = 14695981039346656037U;
    for (const char byte : project_path)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
    return fmt::format("{}{}-{:08x}", alias, name, static_cast<std::uint32_t>(hash ^ (hash >> 32U)));
}

std::vector<std::string> shown_etc_files()
{
    return {
#include "runner/etc_files.inc"
    };
}

std::string passwd_text(const std::vector<Account> &accounts, const std::string &agent_name, const std::string &agent_home)
{
    std::string text;
    for (const auto &account : accounts) {
        const bool is_agent = account.name == agent_name;
        const std::string &home = is_agent ? agent_home : account.home;
        if (!fits_a_line(account.name) || !fits_a_line(home)) continue;
        text += account.name + ":x:" + std::to_string(account.uid.value()) + ":" + std::to_string(account.gid.value()) + "::" + home + ":" +
                (is_agent ? build::shell_path : "/usr/sbin/nologin") + "\n";
    }
    return text;
}

std::string group_text(const std::vector<std::pair<std::string, Gid>> &groups)
{
    std::string text;
    std::vector<gid_t> written;
    for (const auto &[name, gid] : groups) {
        if (!fits_a_line(name) || std::find(written.begin(), written.end(), gid.value()) != written.end()) continue;
        text += name + ":x:" + std::to_string(gid.value()) + ":\n";
        written.push_back(gid.value());
    }
    return text;
}

[[noreturn]] void refuse_tmpdir(const std::string &problem)
{
    throw Failure(FailureKind::tmpdir, "denied: --pi-agent-tmpdir: " + problem);
}

std::string place_of_tmpdir(const std::string &named, const std::string &shown_path, const std::string &below)
{
    const bool absolute = named[0] == '/';
    const std::vector<std::string> components = path_components(resolved_by_text((absolute ? "" : shown_path + "/" + below + "/") + named));
    const std::vector<std::string> root = path_components(shown_path);
    if (components.size() <= root.size() || !std::equal(root.begin(), root.end(), components.begin()))
        refuse_tmpdir(escape_for_display(named) + " is not in " + escape_for_display(shown_path) +
                      ", which is all of the host's that this session can write; name a directory below it by its real path");
    std::string place;
    for (std::size_t index = root.size(); index < components.size(); ++index) {
        if (has_word(".git .hg .svn .jj .bzr", components[index]))
            refuse_tmpdir(escape_for_display(named) + " is in a " + components[index] +
                          ", whose files the programs of version control run and trust; name a directory outside of it");
        place += (place.empty() ? "" : "/") + components[index];
    }
    return place;
}

std::string name_package(const std::string &missing)
{
    const std::string words =
        "this host has no " + missing + ", and the agent downloads it where the network allows that; install it (Debian: ";
    return words + (missing == "fd"
                        ? "fd-find, whose fdfind the agent finds; Debian 12's is too old for searches outside of git repositories)"
                        : "ripgrep)");
}

void keep_from_downloading(EnvironmentInput &environment, const NetworkPolicy &network, const std::vector<std::string> &missing)
{
    if (network.mode == NetworkMode::full) return;
    const bool has_updates = network.mode != NetworkMode::hosts || rule_for(network.hosts, HostRule{"pi.dev"}) != nullptr;
    if (!has_updates)
        environment.defaults["PI_OFFLINE"] = {"1", "pi-agent, because no rule names pi.dev, where pi looks for updates"};
    else if (!missing.empty())
        environment.defaults["PI_OFFLINE"] = {"1", "pi-agent, because fd or rg is missing and the network is restricted"};
}

// Places that the caller's shell names: its PATH, its editor, its toolchains, and git's variables, as one of git's hooks has them.

ShellPlaces judge_shell_places(const std::vector<std::string> &variables, const PlacesInside &places)
{
    ShellPlaces judged;
    std::vector<std::string> of_git;
    std::string refused_of_git;
    for (const auto &assignment : variables) {
        const std::size_t equals = assignment.find('=');
        const std::string name = assignment.substr(0, equals);
        const std::string_view value = std::string_view(assignment).substr(equals + 1);
        if (name == "PATH") {
            judged.path = judge_path(places, value);
        } else if (name.starts_with("GIT_")) {
            const auto inside = name == "GIT_ALTERNATE_OBJECT_DIRECTORIES" ? judge_list_of_git(places, value) : judge_of_git(places, value);
            if (inside || !defence_is_on("shell-places"))
                of_git.push_back(name + "=" + inside.value_or(std::string(value)));
            else
                refused_of_git = name + "=" + escape_for_display(value);
        } else if (name == "EDITOR" || name == "VISUAL") {
            judge_editor(places, name, value, judged);
        } else if (has_word(place_list_names, name)) { // the rest lies where no session sees it
            if (const auto shown = judge_path(places, value); !shown.empty())
                judged.presentation.push_back(fmt::format("{}={}", name, fmt::join(shown, ":")));
        } else if (has_word(toolchain_names, name)) { // who does not see the place has no use for it
            if (const auto inside = place_inside(places, value)) judged.presentation.push_back(name + "=" + *inside);
        } else {
            judged.presentation.push_back(assignment);
        }
    }
    constexpr std::array<std::string_view, 3> place_variables[] = {
#include "runner/place_variables.inc"
    };
    for (const auto &[name, directory, rest] : place_variables)
        for (const auto &[outside, inside] : places.toolchains)
            if (outside == inside && outside.ends_with(directory))
                judged.presentation.push_back(fmt::format("{}={}{}", name, inside, rest));
    if (refused_of_git.empty())
        judged.presentation.insert(judged.presentation.end(), of_git.begin(), of_git.end());
    else
        judged.notices.push_back(refused_of_git +
                                 " is not passed on, nor are the other variables of this shell that name places of git (GIT_DIR, "
                                 "GIT_INDEX_FILE, …): it is in no place that this session shows; start pi where it is shown, "
                                 "or without the variable");
    return judged;
}

// Which of an agent's arguments name files.

std::vector<ArgumentFile> find_named_files(const std::vector<std::string> &arguments, const std::string &directory, const std::string &home)
{
    std::vector<ArgumentFile> files;
    const auto add = [&](std::size_t index, std::size_t begin, NamedAs as) {
        std::string path = arguments[index].substr(begin);
        if (path.empty()) return;
        // The agent would take "~" for its own home. In a text "~" is only a sign.
        const bool of_home = as != NamedAs::text && (path == "~" || path.starts_with("~/"));
        if (of_home)
            path.replace(0, 1, home);
        else if (!path.starts_with("/"))
            path = join_path(directory, path);
        if (path.size() >= PATH_MAX) return;
        path = resolved_by_text(path); // as path.resolve() of node does it
        if (path != "/") files.push_back({index, begin, std::move(path), as});
    };
    if (!arguments.empty() && has_word(pi_commands, arguments.front())) return files;
    bool options = true;
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        const std::string &argument = arguments[index];
        if (options && argument == "--") {
            options = false;
        } else if (const auto as = options ? named_after(argument) : std::nullopt) {
            if (++index < arguments.size()) add(index, 0, *as);
        } else if (options && std::find(std::begin(value_options), std::end(value_options), argument) != std::end(value_options)) {
            ++index;
        } else if (argument.starts_with(file_prefix)) {
            add(index, 1, NamedAs::file);
        }
    }
    return files;
}

std::string place_of_copy(std::size_t number, const ArgumentFile &file)
{
    return std::string(copies_inside) + "/" + std::to_string(number) + "/" + file.path.substr(file.path.rfind('/') + 1);
}

void rename_argument(std::vector<std::string> &arguments, const ArgumentFile &file, const std::string &path)
{
    std::string &argument = arguments[file.argument];
    argument.replace(file.begin, argument.size() - file.begin, path);
}

} // namespace pi_agent
