// Opening it, and asking the kernel for its path.
#include "common/host/beneath.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

namespace pi_agent {

UniqueFd open_working_directory(const std::string &path)
{
    UniqueFd directory = UniqueFd::adopt(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (directory) return directory;
    if (errno != EACCES) throw_errno(path == "." ? "opening the working directory" : "cannot open " + escape_for_display(path));
    std::error_code unknown; // the kernel tells the path even so, unless the directory was deleted
    const std::string shown = path == "." ? std::filesystem::current_path(unknown).string() : path;
    throw Failure(ExitStatus::denied,
                  "denied: you may not enter " + (shown.empty() ? "the working directory" : escape_for_display(shown)) + "; cd to another");
}

std::string path_of_working_directory(FdRef directory)
{
    struct stat facts {};
    if (fstat(directory.get(), &facts) != 0) throw_errno("examining the working directory");
    if (facts.st_nlink == 0) throw Failure(ExitStatus::denied, "denied: the working directory was deleted; cd to one that exists");
    std::string path = kernel_path(directory);
    if (path.empty())
        throw Failure(ExitStatus::denied, "denied: the path of the working directory is longer than 4,096 bytes, or leads out of what "
                                          "this shell sees; cd to a directory higher up");
    if (fstatat(directory.get(), ".", &facts, 0) != 0)
        throw Failure(ExitStatus::denied, "denied: you may not enter " + escape_for_display(path) + "; cd to another");
    return path;
}

} // namespace pi_agent
