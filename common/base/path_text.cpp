// Taking paths apart and putting them together.
#include "common/base/path_text.hpp"

#include <algorithm>

namespace pi_agent {

bool has_odd_component(std::string_view path) noexcept
{
    while (true) {
        const auto length = std::min(path.find('/'), path.size());
        const auto part = path.substr(0, length);
        if (part.empty() || part == "." || part == "..") return true;
        if (length == path.size()) return false;
        path.remove_prefix(length + 1);
    }
}

std::string without_trailing_slashes(std::string path)
{
    while (path.size() > 1 && path.back() == '/')
        path.pop_back();
    return path;
}

bool is_within(std::string_view path, std::string_view directory) noexcept
{
    if (directory == "/") return !path.empty() && path.front() == '/';
    return path.substr(0, directory.size()) == directory && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string join_path(const std::string &directory, std::string_view name)
{
    return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

std::string parent_of(const std::string &path)
{
    const std::size_t slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::vector<std::string> path_components(std::string_view path)
{
    std::vector<std::string> parts;
    while (!path.empty()) {
        const auto length = std::min(path.find('/'), path.size());
        const auto part = path.substr(0, length);
        if (!part.empty() && part != ".") parts.emplace_back(part);
        path.remove_prefix(std::min(length + 1, path.size()));
    }
    return parts;
}

} // namespace pi_agent
