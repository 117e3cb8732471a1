// The rules of the views.
#include "runner/plan/host_view.hpp"

#include "common/policy/policy_paths.hpp"
#include "common/seams/defence.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

using namespace std::string_view_literals;

namespace {

// Of /etc, in the minimal view: certificates, and what programs of /usr keep there instead of beside themselves. By
// the distributions' own rules none of it holds secrets, and all of it can be read by everybody on the host. Single files:
// runner/plan/etc_files.cpp.
constexpr std::array etc_directories = {"alternatives"sv,
                                        "ca-certificates"sv,
                                        "crypto-policies"sv,
                                        "fonts"sv,
                                        "gnutls"sv,
                                        "ld.so.conf.d"sv,
                                        "maven"sv,
                                        "perl"sv,
                                        "pki"sv,
                                        "R"sv,
                                        "ssl"sv,
                                        "static"sv,
                                        "terminfo"sv,
                                        "texmf"sv};
constexpr std::array<std::string_view, 2> etc_prefixes = {"java-", "python3"};

bool has_one_component(const std::string &path)
{
    return path.rfind('/') == 0;
}

} // namespace

bool is_shown_by(View view, std::string_view path)
{
    if (std::any_of(program_trees.begin(), program_trees.end(), [&](std::string_view tree) { return is_within(path, tree); })) return true;
    if (view == View::host) return is_within(path, "/etc");
    constexpr std::string_view etc = "/etc/";
    if (path.substr(0, etc.size()) != etc) return false;
    const std::string_view below = path.substr(etc.size());
    return is_shown_in_etc(below.substr(0, below.find('/')));
}

bool is_shown_in_etc(std::string_view name)
{
    return std::find(etc_directories.begin(), etc_directories.end(), name) != etc_directories.end() ||
           std::any_of(etc_prefixes.begin(), etc_prefixes.end(),
                       [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; }) ||
           (has_test_seams && name == "pi-agent"); // common/seams/defence.cpp, for pi-agent-exec
}

std::vector<std::string> shown_etc_directories()
{
    std::vector<std::string> names(etc_directories.begin(), etc_directories.end());
    names.erase(std::remove(names.begin(), names.end(), "pi-agent"), names.end()); // of builds for tests
    return names;
}

std::string tree_of_program(const std::string &path)
{
    const std::size_t modules = path.find("/node_modules/");
    const std::string directory = parent_of(path);
    const bool in_bin = directory.size() > 4 && directory.compare(directory.size() - 4, 4, "/bin") == 0;
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

} // namespace pi_agent
