// The table of files, and how each is looked at.
#include "wrapper/file_doors.hpp"

#include "common/base/text.hpp"

#include <array>
#include <dirent.h>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace pi_agent {

namespace {

constexpr int depth_limit = 64;                           // of a package.json
constexpr std::size_t read_limit = std::size_t{1} << 20U; // bytes

// One file, or all files in a directory whose names end so.
struct Door {
    std::string_view path; // from the directory that holds its first component
    std::string_view what;
    // Separated by |: only a file with one of these words, or with a backslash, which can spell any word, is one.
    std::string_view words = {};
    std::string_view end = {};
    bool is_directory = false;
};

constexpr std::string_view editor = "editor's settings";
constexpr std::string_view tasks = "editor's tasks";
constexpr std::string_view shell = "commands for a shell that enters";
constexpr std::string_view packages = "package manager's programs";
constexpr std::string_view mise_words = "hook|env|exec|source|plugin|path|task|alias|script";
constexpr std::string_view npm_words =
    "shell|node-options|node_options|git|init|editor|viewer|prefix|config|python|tokenhelper|tokenHelper|browser|pnpmfile|scripts";
constexpr std::string_view cargo_words = "runner|rustc|rustdoc|wrapper|linker|alias|credential|browser|include|env|paths|source";

constexpr std::array doors = {
    Door{".vscode/tasks.json", tasks},
    Door{".vscode/launch.json", tasks},
    Door{".vscode/settings.json", editor},
    Door{".vscode/mcp.json", tasks},
    Door{".devcontainer/devcontainer.json", tasks},
    Door{".devcontainer.json", tasks},
    Door{".idea/runConfigurations", tasks, {}, ".xml", true},
    Door{".idea/watcherTasks.xml", tasks},
    Door{".idea/startup.xml", tasks},
    Door{".idea/externalDependencies.xml", editor},
    Door{".run", tasks, {}, ".run.xml", true},
    Door{".zed/settings.json", editor},
    Door{".zed/tasks.json", tasks},
    Door{".zed/debug.json", tasks},
    Door{".fleet/settings.json", editor},
    Door{".fleet/run.json", tasks},
    Door{".exrc", editor},
    Door{".vimrc", editor},
    Door{".nvimrc", editor},
    Door{".nvim.lua", editor},
    Door{".lvimrc", editor},
    Door{".local.vimrc", editor},
    Door{".ycm_extra_conf.py", editor},
    Door{".dir-locals.el", editor},
    Door{".dir-locals-2.el", editor},
    Door{".helix/config.toml", editor},
    Door{".helix/languages.toml", editor},
    Door{".kateproject", editor},
    Door{".gdbinit", "debugger's commands"},
    Door{".lldbinit", "debugger's commands"},
    Door{".envrc", shell},
    Door{".autoenv.zsh", shell},
    Door{".autoenv", shell},
    Door{".tool-versions", shell, "path:|ref:"},
    Door{"mise.toml", shell, mise_words},
    Door{".mise.toml", shell, mise_words},
    Door{"mise.local.toml", shell, mise_words},
    Door{".mise.local.toml", shell, mise_words},
    Door{"mise/config.toml", shell, mise_words},
    Door{".mise/config.toml", shell, mise_words},
    Door{".config/mise.toml", shell, mise_words},
    Door{".config/mise/config.toml", shell, mise_words},
    Door{".config/mise/conf.d", shell, mise_words, ".toml", true},
    Door{".husky", "git hook", {}, "", true},
    Door{".husky/_", "git hook", {}, "", true},
    Door{".huskyrc", "git hook"},
    Door{".huskyrc.json", "git hook"},
    Door{".npmrc", packages, npm_words},
    Door{".pnpmfile.cjs", packages},
    Door{".yarnrc", packages, "yarn-path|script-shell|path"},
    Door{".yarnrc.yml", packages, "yarnPath|plugins|path:|initScope|enableScripts"},
    Door{".cargo/config.toml", packages, cargo_words},
    Door{".cargo/config", packages, cargo_words},
};

// By name: what a file is called that may be called anything before that.
constexpr std::array endings = {
    Door{".code-workspace", tasks},
    Door{".sublime-project", tasks},
};

const std::unordered_multimap<std::string_view, const Door *> &doors_by_first_component()
{
    static const auto table = [] {
        std::unordered_multimap<std::string_view, const Door *> made;
        for (const auto &door : doors)
            made.emplace(door.path.substr(0, door.path.find('/')), &door);
        return made;
    }();
    return table;
}

bool has_one_of(std::string_view text, std::string_view words)
{
    if (text.find('\\') != std::string_view::npos) return true;
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find('|'));
        if (text.find(word) != std::string_view::npos) return true;
        words.remove_prefix(std::min(words.size(), word.size() + 1));
    }
    return false;
}

} // namespace

void FileDoors::entry(const std::string &directory, std::string_view name)
{
    if (name == "package.json") return package_scripts(join_path(directory, name));
    const auto [begin, end] = doors_by_first_component().equal_range(name);
    for (auto found = begin; found != end; ++found) {
        const Door &door = *found->second;
        if (door.is_directory)
            all_in(join_path(directory, door.path), door.what, door.end);
        else
            known(join_path(directory, door.path), door.what, door.words);
    }
    for (const auto &door : endings)
        if (name.ends_with(door.path)) marker_.file(join_path(directory, name), std::string(door.what));
}

void FileDoors::known(const std::string &path, std::string_view what, std::string_view words)
{
    if (!words.empty()) {
        const auto facts = marker_.tree().look(path, Links::follow);
        const bool is_short = facts && S_ISREG(facts->st_mode) && static_cast<std::size_t>(facts->st_size) < read_limit;
        if (is_short && !has_one_of(marker_.tree().read(path, read_limit).value_or("\\"), words)) return;
    }
    marker_.file(path, std::string(what));
}

void FileDoors::all_in(const std::string &directory, std::string_view what, std::string_view end)
{
    const Listing listing = marker_.tree().list(directory, Links::follow);
    if (listing.found == Listing::Found::unreadable) marker_.unreadable(directory, listing.facts);
    for (const auto &entry : listing.entries)
        if (entry.type != DT_DIR && entry.name.ends_with(end)) marker_.file(join_path(directory, entry.name), std::string(what));
}

void FileDoors::package_scripts(const std::string &path)
{
    const auto facts = marker_.tree().look(path, Links::follow);
    if (!facts || !S_ISREG(facts->st_mode)) return;
    if (static_cast<std::size_t>(facts->st_size) > read_limit) return marker_.whole(path, "package scripts", *facts);
    const PackageScripts scripts = read_package_scripts(marker_.tree().read(path, read_limit).value_or(""));
    marker_.part(path, "package scripts", *facts, scripts.text, scripts.run_at_install ? Appearing::counts : Appearing::is_ordinary);
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

} // namespace pi_agent
