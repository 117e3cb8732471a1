// Writing, syncing and renaming by descriptor.
#include "admin/host/root_file.hpp"

#include "common/base/error.hpp"
#include "common/base/whole_file.hpp"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

void sync_directory(FdRef directory, const std::string &path)
{
    if (::fsync(directory.get()) != 0) throw_errno("cannot write the directory of " + path + " to disk");
}

} // namespace

void write_beside(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path)
{
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    const auto fd = UniqueFd::adopt(::openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400));
    if (!fd) throw_errno("cannot create " + path);
    try {
        write_whole(fd, text, path);
        if (::fchown(fd.get(), 0, 0) != 0 || ::fchmod(fd.get(), mode) != 0) throw_errno("cannot set owner and mode of " + path);
        if (::fsync(fd.get()) != 0) throw_errno("cannot write " + path + " to disk");
    } catch (const std::exception &) {
        ::unlinkat(directory.get(), name.c_str(), 0); // best_effort: half a file is no use, and what failed is told
        throw;
    }
}

void move_into_place(FdRef directory, const std::string &name, const std::string &final_name, const std::string &path)
{
    if (::renameat(directory.get(), name.c_str(), directory.get(), final_name.c_str()) != 0) throw_errno("cannot install " + path);
    sync_directory(directory, path);
}

void replace_root_file(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path)
{
    write_beside(directory, name + ".new", text, mode, path + ".new");
    move_into_place(directory, name + ".new", name, path);
}

void remove_root_file(FdRef directory, const std::string &name, const std::string &path)
{
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    sync_directory(directory, path);
}

} // namespace pi_agent
