// Making the user's own choice of a temporary directory.
#include "runner/as_user/user_tmpdir.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/base/path_text.hpp"
#include "common/seams/defence.hpp"
#include "runner/plan/tmpdir_place.hpp"

#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace pi_agent {

namespace {

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
        refuse_tmpdir(path + " is a symbolic link, which could lead out of the root; name the directory itself");
    case ENOTDIR:
        refuse_tmpdir(path + " is no directory; name another");
    case EXDEV:
        refuse_tmpdir(path + " is another file system that is mounted inside the root, and those are not shown to the agent; name another");
    case EACCES:
        refuse_tmpdir("you may not enter or write " + path + "; name another");
    default:
        throw_errno("making the temporary directory " + path);
    }
}

} // namespace

void make_user_tmpdir(const Account &caller, FdRef root, const std::string &place, unsigned mask)
{
    UniqueFd current = UniqueFd::adopt(openat(root.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!current) throw_errno("opening the root");
    const std::vector<std::string> components = path_components(place);
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
        refuse_tmpdir(path + " belongs to somebody else, who could put things in the way of the agent's; name one of your own");
}

} // namespace pi_agent
