// Which of an agent's arguments name files.
#include "runner/plan/file_arguments.hpp"

#include "common/base/text.hpp"

#include <climits>

namespace pi_agent {

namespace {

// Lists of options of pi 0.73 to 0.87 (`pi --help`), with one space between them.
struct FileOptions {
    std::string_view names;
    NamedAs next; // what the next argument is
};
constexpr FileOptions file_options[] = {
    {"--fork --export", NamedAs::file},
    {"--extension -e --skill --prompt-template --theme", NamedAs::tree},
    {"--append-system-prompt --system-prompt", NamedAs::text},
    {"--session", NamedAs::written},
};
// The next argument names no file that is read.
constexpr std::string_view value_options = "--provider --model --api-key --mode --name -n --session-id --session-dir --models --tools -t "
                                           "--exclude-tools -xt --thinking --use-theme --tui-mode";
// As the first argument: all that follow belong to it.
constexpr std::string_view pi_commands = "install remove uninstall update list config auth";
constexpr char file_prefix = '@'; // of an argument that is a file by itself

std::optional<NamedAs> named_after(const std::string &option)
{
    const auto *const found =
        std::find_if(std::begin(file_options), std::end(file_options), [&](const FileOptions &one) { return has_word(one.names, option); });
    return found == std::end(file_options) ? std::nullopt : std::optional(found->next);
}

} // namespace

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
        } else if (options && has_word(value_options, argument)) {
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
