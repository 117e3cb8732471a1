// Reading a repository's configuration and attributes as text.
#include "runner/as_user/repository_settings.hpp"

#include "common/base/git_settings.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"

#include <algorithm>
#include <set>

namespace pi_agent {

namespace {

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

std::string text_of(const GuardedTree &tree, const std::string &repository, const GuardedTree *git_directory, const std::string &name)
{
    const auto text = git_directory != nullptr ? small_text(*git_directory, "", name) : shared_git_text(tree, repository, name);
    return text.value_or("");
}

} // namespace

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
    const OwnSettings own = own_settings(text_of(tree, repository, git_directory, "config"));
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
    add(text_of(tree, repository, git_directory, "info/attributes"));
    for (std::string directory = below; is_within("/" + directory, "/" + repository); directory = split_last(directory).first) {
        add(small_text(tree, directory, ".gitattributes").value_or(""));
        if (directory == repository || directory.empty()) break;
    }
    found.filters.assign(names.begin(), names.end());
    found.filters.resize(std::min(found.filters.size(), filters_limit));
    return found;
}

} // namespace pi_agent
