// Finding and making the user's own choice of a temporary directory.
#include "runner/as_user/user_tmpdir.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/seams/defence.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/wire/answer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace pi_agent {

namespace {

[[noreturn]] void refuse(const std::string &problem)
{
    throw Failure(ExitStatus::denied, "denied: --pi-agent-tmpdir: " + problem);
}

std::vector<std::string> split(const std::string &path)
{
    std::vector<std::string> components;
    for (std::size_t start = 0; start <= path.size();) {
        const std::size_t slash = std::min(path.find('/', start), path.size());
        if (slash > start) components.push_back(path.substr(start, slash - start));
        start = slash + 1;
    }
    return components;
}

// What is mounted inside the root is hidden from the agent, so a directory there would not be seen.
UniqueFd enter(FdRef parent, const std::string &name)
{
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC; // search permission is enough
    how.resolve = defence_is_on("tmpdir-beneath") ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV : 0;
    return UniqueFd::adopt(static_cast<int>(syscall(SYS_openat2, parent.get(), name.c_str(), &how, sizeof how)));
}

[[noreturn]] void refuse_component(const std::string &path)
{
    switch (errno) {
    case ELOOP:
        refuse(path + " is a symbolic link, which could lead out of the root; name the directory itself");
    case ENOTDIR:
        refuse(path + " is no directory; name another");
    case EXDEV:
        refuse(path + " is another file system that is mounted inside the root, and those are not shown to the agent; name another");
    case EACCES:
        refuse("you may not enter or write " + path + "; name another");
    default:
        throw_errno("making the temporary directory " + path);
    }
}

// As the caller: nothing is made that they could not make themselves.
void make_directories(const Account &caller, FdRef root, const std::string &place, unsigned mask)
{
    UniqueFd current = UniqueFd::adopt(openat(root.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!current) throw_errno("opening the root");
    const std::vector<std::string> components = split(place);
    std::string path;
    umask(0);
    for (std::size_t index = 0; index < components.size(); ++index) {
        path += (path.empty() ? "" : "/") + escape_for_display(components[index]);
        const mode_t mode = index + 1 == components.size() ? 0700 : 0777 & ~mask;
        if (mkdirat(current.get(), components[index].c_str(), mode) != 0 && errno != EEXIST) refuse_component(path);
        current = enter(current, components[index]);
        if (!current) refuse_component(path);
    }
    struct stat facts {};
    if (fstat(current.get(), &facts) != 0) throw_errno("examining the temporary directory " + path);
    if (facts.st_uid != caller.uid.value() && defence_is_on("tmpdir-owner"))
        refuse(path + " belongs to somebody else, who could put things in the way of the agent's; name one of your own");
}

} // namespace

std::string place_of_tmpdir(const std::string &named, const std::string &shown_path, const std::string &below)
{
    const bool absolute = named[0] == '/';
    std::vector<std::string> components = split(absolute ? "" : shown_path + "/" + below);
    for (const auto &name : split(named)) {
        if (name == "..") {
            if (!components.empty()) components.pop_back();
        } else if (name != ".") {
            components.push_back(name);
        }
    }
    const std::vector<std::string> root = split(shown_path);
    if (components.size() <= root.size() || !std::equal(root.begin(), root.end(), components.begin()))
        refuse(escape_for_display(named) + " does not lie in " + escape_for_display(shown_path) +
               ", which is all of the host's that this session can write; name a directory below it by its real path");
    std::string place;
    for (std::size_t index = root.size(); index < components.size(); ++index)
        place += (place.empty() ? "" : "/") + components[index];
    return place;
}

std::string make_user_tmpdir(const AsRoot &root, const Account &caller, const OpenedProject &project, const Request &request)
{
    if (request.tmpdir.empty()) return "";
    const UniqueFd &top = project.shown.directory;
    std::string place = place_of_tmpdir(request.tmpdir, project.shown.path(), project.below);
    Child child(root, "maker of the temporary directory", caller, {top.get()}, [&](const AsUser & /*user*/, FdRef channel) {
        fault_point("making-tmpdir");
        make_directories(caller, top, place, request.umask);
        send_answer(channel, "");
    });
    child.receive();
    return place;
}

} // namespace pi_agent
