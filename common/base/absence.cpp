// errno and faccessat(2).
#include "common/base/absence.hpp"

#include "common/base/error.hpp"
#include "common/seams/defence.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace pi_agent {

void require_gone(const std::string &action, int also)
{
    const int reason = errno; // looking for the defence may change it
    if (reason == ENOENT || (also != 0 && reason == also) || !defence_is_on("only-enoent")) return;
    throw SystemFailure(reason, action);
}

bool has_name(FdRef directory, const std::string &name, const std::string &action)
{
    if (faccessat(directory.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return true;
    require_gone(action);
    return false;
}

bool path_exists(const std::string &path)
{
    return has_name(FdRef(AT_FDCWD), path, "looking for " + path);
}

} // namespace pi_agent
