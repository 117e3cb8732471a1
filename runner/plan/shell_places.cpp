// Places that the caller's shell names: its PATH, its editor, its toolchains, and git's variables, as one of git's hooks has them.
#include "runner/plan/shell_places.hpp"

#include "common/base/request.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <optional>

namespace pi_agent {

namespace {

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

bool is_of_git(std::string_view name)
{
    return name.starts_with("GIT_");
}

} // namespace

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
        } else if (is_of_git(name)) {
            const auto inside = name == "GIT_ALTERNATE_OBJECT_DIRECTORIES" ? judge_list_of_git(places, value) : judge_of_git(places, value);
            if (inside || !defence_is_on("shell-places"))
                of_git.push_back(name + "=" + inside.value_or(std::string(value)));
            else
                refused_of_git = name + "=" + escape_for_display(value);
        } else if (name == "EDITOR" || name == "VISUAL") {
            judge_editor(places, name, value, judged);
        } else if (has_word(toolchain_names, name)) { // who does not see the place has no use for it
            if (const auto inside = place_inside(places, value)) judged.presentation.push_back(name + "=" + *inside);
        } else {
            judged.presentation.push_back(assignment);
        }
    }
    if (refused_of_git.empty())
        judged.presentation.insert(judged.presentation.end(), of_git.begin(), of_git.end());
    else
        judged.notices.push_back(refused_of_git +
                                 " is not passed on, nor are the other variables of this shell that name places of git (GIT_DIR, "
                                 "GIT_INDEX_FILE, …): it is in no place that this session shows; start pi where it is shown, "
                                 "or without the variable");
    return judged;
}

} // namespace pi_agent
