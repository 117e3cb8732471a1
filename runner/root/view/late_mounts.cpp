// Attaching what the session's view gets late.
#include "runner/root/view/late_mounts.hpp"

#include "common/base/error.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/fault_point.hpp"

#include <fcntl.h>

namespace pi_agent {

void attach_late(const AsRoot &root, FdRef mount_namespace, std::vector<LateMount> &mounts)
{
    with_mounts_of(root, mount_namespace, [&] {
        const UniqueFd view = UniqueFd::adopt(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!view) throw_errno("opening the session's view");
        for (const auto &late : mounts)
            attach(root, late.mount, open_beneath(view, late.path.substr(1), O_PATH));
    });
    fault_point("late-mounted");
    mounts.clear();
}

std::vector<std::string> places_of(const std::vector<LateMount> &mounts)
{
    std::vector<std::string> places;
    places.reserve(mounts.size());
    for (const auto &late : mounts)
        places.push_back(late.path);
    return places;
}

} // namespace pi_agent
