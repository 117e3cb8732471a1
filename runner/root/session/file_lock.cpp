// Locks, and the file systems that cannot be trusted with them.
#include "runner/root/session/state_directory.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"

#include <cerrno>
#include <chrono>
#include <linux/magic.h>
#include <map>
#include <sys/file.h>
#include <sys/vfs.h>
#include <thread>

namespace pi_agent {

bool lock_until(FdRef file, Deadline deadline, const std::string &what, const std::function<void()> &waiting)
{
    while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) throw_errno("locking " + what);
        if (Clock::now() >= deadline) return false;
        if (waiting) waiting();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

std::string network_file_system(unsigned long type)
{
    constexpr unsigned long lustre = 0x0bd00bd0; // these are in no header
    constexpr unsigned long gpfs = 0x47504653;
    constexpr unsigned long beegfs = 0x19830326;
    constexpr unsigned long gfs2 = 0x01161970;
    static const std::map<unsigned long, const char *> names = {{NFS_SUPER_MAGIC, "NFS"},
                                                                {SMB_SUPER_MAGIC, "SMB"},
                                                                {CIFS_SUPER_MAGIC, "CIFS"},
                                                                {SMB2_SUPER_MAGIC, "SMB"},
                                                                {V9FS_MAGIC, "9p"},
                                                                {CEPH_SUPER_MAGIC, "Ceph"},
                                                                {AFS_SUPER_MAGIC, "AFS"}, // OpenAFS
                                                                {AFS_FS_MAGIC, "AFS"},    // the kernel's own
                                                                {CODA_SUPER_MAGIC, "Coda"},
                                                                {FUSE_SUPER_MAGIC, "FUSE"},
                                                                {lustre, "Lustre"},
                                                                {gpfs, "GPFS"},
                                                                {gfs2, "GFS2"},
                                                                {OCFS2_SUPER_MAGIC, "OCFS2"},
                                                                {beegfs, "BeeGFS"}};
    const auto found = names.find(type);
    return found == names.end() ? "" : found->second;
}

void require_own_file_system(FdRef directory, const std::string &path, const std::string &key)
{
    struct statfs facts {};
    if (fstatfs(directory.get(), &facts) != 0) throw_errno("examining the file system of " + path);
    const std::string name = network_file_system(static_cast<unsigned long>(facts.f_type));
    if (name.empty() || !defence_is_on("state-on-this-host")) return;
    throw Failure(ExitStatus::configuration, path + " (" + key + ") lies on another host (" + name +
                                                 "): its locks and owners are not to be relied on; mount a local file system there. "
                                                 "Projects may lie on one (docs/fleet.md)");
}

} // namespace pi_agent
