// The walk that trusted files and project roots share.
#include "common/host/path_walk.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"

#include <array>
#include <climits>
#include <deque>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace pi_agent {

namespace {

PathStep take_step(int directory, const std::string &name, std::string path)
{
    PathStep step{std::move(path), open_step(directory, name)};
    if (!step.fd) throw_errno("cannot open " + escape_for_display(step.path));
    if (::fstat(step.fd.get(), &step.status) != 0) throw_errno("cannot examine " + escape_for_display(step.path));
    return step;
}

} // namespace

std::string kernel_path(FdRef fd)
{
    std::array<char, PATH_MAX> text{};
    const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), text.data(), text.size());
    if (length <= 0 || static_cast<std::size_t>(length) >= text.size() || text[0] != '/') return "";
    return std::string(text.data(), static_cast<std::size_t>(length));
}

std::string path_of_directory(FdRef fd)
{
    std::string path = kernel_path(fd);
    if (path.empty())
        throw Failure(ExitStatus::denied,
                      "denied: the path of the working directory is longer than 4,096 bytes, or leads to nowhere on this host; "
                      "cd to a directory higher up");
    return path;
}

UniqueFd open_step(int directory, const std::string &name) noexcept
{
    // O_DIRECTORY first: O_PATH alone would open an automount point without mounting what belongs there.
    constexpr int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd fd = UniqueFd::adopt(::openat(directory, name.c_str(), flags | O_DIRECTORY));
    if (!fd && errno == ENOTDIR) fd = UniqueFd::adopt(::openat(directory, name.c_str(), flags));
    return fd;
}

std::string path_of_step(const std::string &directory, const std::string &name)
{
    if (name == "..") return parent_of(directory);
    return directory == "/" ? "/" + name : directory + "/" + name;
}

std::string link_target(FdRef fd, const std::string &path)
{
    std::vector<char> target(PATH_MAX);
    const auto length = ::readlinkat(fd.get(), "", target.data(), target.size());
    if (length < 0) throw_errno("cannot read the symbolic link " + escape_for_display(path));
    if (length == 0 || static_cast<std::size_t>(length) >= target.size()) {
        throw SystemFailure(ENAMETOOLONG, "cannot read the symbolic link " + escape_for_display(path));
    }
    return {target.data(), static_cast<std::size_t>(length)};
}

PathStep walk_path(const std::string &path, const StepJudge &judge)
{
    if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos) {
        throw SystemFailure(EINVAL, "cannot open " + escape_for_display(path) + " (not an absolute path)");
    }
    auto current = take_step(AT_FDCWD, "/", "/");
    judge(current, current);
    const auto names = path_components(path);
    std::deque<std::string> pending(names.begin(), names.end());
    int links = 0;
    while (!pending.empty()) {
        const auto name = std::move(pending.front());
        pending.pop_front();
        auto entry = take_step(current.fd.get(), name, path_of_step(current.path, name));
        judge(current, entry);
        if (!S_ISLNK(entry.status.st_mode)) {
            current = std::move(entry);
            continue;
        }
        if (++links > most_links) throw SystemFailure(ELOOP, "cannot open " + escape_for_display(path));
        const auto target = link_target(entry.fd, entry.path);
        const auto parts = path_components(target);
        pending.insert(pending.begin(), parts.begin(), parts.end());
        if (target.front() == '/') current = take_step(AT_FDCWD, "/", "/");
    }
    return current;
}

} // namespace pi_agent
