// Which of an agent's arguments name files.
#include "runner/plan/file_arguments.hpp"

#include "common/base/text.hpp"

#include <climits>

namespace pi_agent {

namespace {

class ArgumentReader {
public:
    ArgumentReader(const FileArguments &known, const std::string &directory, const std::string &home)
        : known_(known), directory_(directory), home_(home)
    {
    }

    std::vector<ArgumentFile> find(const std::vector<std::string> &arguments)
    {
        if (!arguments.empty() && has_word(known_.commands, arguments.front())) return {};
        bool options = true;
        for (std::size_t index = 0; index < arguments.size(); ++index) {
            const std::string &argument = arguments[index];
            if (options && argument == "--") {
                options = false;
            } else if (const auto as = options ? kind_of(argument) : std::nullopt) {
                if (++index < arguments.size()) add(arguments[index], index, 0, *as);
            } else if (options && has_word(known_.others, argument)) {
                ++index;
            } else if (!known_.prefix.empty() && argument.starts_with(known_.prefix)) {
                add(argument, index, known_.prefix.size(), NamedAs::file);
            }
        }
        return std::move(found_);
    }

private:
    [[nodiscard]] std::optional<NamedAs> kind_of(const std::string &option) const
    {
        if (has_word(known_.files, option)) return NamedAs::file;
        if (has_word(known_.trees, option)) return NamedAs::tree;
        if (has_word(known_.texts, option)) return NamedAs::text;
        if (has_word(known_.written, option)) return NamedAs::written;
        return std::nullopt;
    }

    void add(const std::string &argument, std::size_t index, std::size_t begin, NamedAs as)
    {
        std::string path = argument.substr(begin);
        // The agent would take "~" for its own home. In a text "~" is only a sign.
        const bool of_home = as != NamedAs::text && (path == "~" || path.starts_with("~/"));
        if (of_home)
            path.replace(0, 1, home_);
        else if (!path.starts_with("/"))
            path = join_path(directory_, path);
        if (argument.size() == begin || path.size() >= PATH_MAX) return;
        path = resolved_by_text(path); // as path.resolve() of node does it
        if (path != "/") found_.push_back({index, begin, std::move(path), as});
    }

    const FileArguments &known_;
    const std::string &directory_;
    const std::string &home_;
    std::vector<ArgumentFile> found_;
};

} // namespace

std::vector<ArgumentFile> find_named_files(const std::vector<std::string> &arguments, const FileArguments &known,
                                           const std::string &directory, const std::string &home)
{
    return ArgumentReader(known, directory, home).find(arguments);
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
