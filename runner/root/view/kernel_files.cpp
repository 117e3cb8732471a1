// Read-only copies of the kernel's switches. /sys needs none: of it a session sees what the runner puts there
// (runner/root/view/host_mounts.hpp).
#include "runner/root/view/kernel_files.hpp"

#include "common/base/error.hpp"
#include "common/seams/defence.hpp"

#include <array>
#include <fcntl.h>
#include <string>

namespace pi_agent {

namespace {

// As systemd 257 has them (src/core/namespace.c, protect_kernel_tunables_proc_table). Not all of /proc: a process has switches of its own.
constexpr std::array<const char *, 12> read_only = {
    "/proc/acpi",          "/proc/apm",  "/proc/asound", "/proc/bus",           "/proc/fs",          "/proc/irq", "/proc/mtrr",
    "/proc/latency_stats", "/proc/scsi", "/proc/sys",    "/proc/sysrq-trigger", "/proc/timer_stats",
};
constexpr std::array<const char *, 2> unreadable = {"/proc/kallsyms", "/proc/kcore"};

// Only the kernel makes names in /proc. None where this kernel has no such file.
UniqueFd find_kernel_file(const char *path)
{
    UniqueFd file = UniqueFd::adopt(open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!file && errno != ENOENT) throw_errno(std::string("opening ") + path);
    return file;
}

} // namespace

std::vector<LateMount> protect_kernel_files(const AsRoot &root)
{
    std::vector<LateMount> late;
    if (!defence_is_on("kernel-files")) return late;
    MountAttributes attributes;
    attributes.read_only = true;
    for (const char *path : read_only)
        if (const UniqueFd file = find_kernel_file(path)) late.push_back({clone_mount(root, file, Submounts::leave_out, attributes), path});
    const UniqueFd device = UniqueFd::adopt(open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!device) throw_errno("opening /dev/null");
    for (const char *path : unreadable) // a device in a mount that has none: opening it is EACCES (mount(8), nodev)
        if (find_kernel_file(path)) late.push_back({clone_mount(root, device, Submounts::leave_out, attributes), path});
    return late;
}

} // namespace pi_agent
