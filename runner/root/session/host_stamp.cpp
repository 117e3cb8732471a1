// A file of root's in /run that is replaced: inode and time are the stamp.
#include "runner/root/session/host_stamp.hpp"

#include "common/base/absence.hpp"
#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "runner/root/session/session_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *stamp_name = "changed";
constexpr const char *fresh_name = "changed.new";

} // namespace

std::string host_stamp()
{
    struct stat facts {};
    if (fstatat(open_runtime_directory().get(), stamp_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        require_gone("looking whether this host was changed");
        return "";
    }
    return std::to_string(facts.st_ino) + ":" + std::to_string(facts.st_ctim.tv_sec) + "." + std::to_string(facts.st_ctim.tv_nsec);
}

void mark_host_changed(const AsRoot & /*root*/)
{
    const UniqueFd directory = open_runtime_directory();
    const UniqueFd fresh =
        UniqueFd::adopt(openat(directory.get(), fresh_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fresh || renameat(directory.get(), fresh_name, directory.get(), stamp_name) != 0)
        throw_errno("telling starts that are under way that this host is changed");
}

} // namespace pi_agent
