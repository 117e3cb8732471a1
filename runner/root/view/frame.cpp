// Making the frames that stand in for directories of the host.
#include "runner/root/view/frame.hpp"

#include "runner/root/mount/mounts.hpp"

#include <utility>

namespace pi_agent {

UniqueFd make_frame(const AsRoot &root, const SessionDirectory &session, const std::string &name, const std::vector<std::string> &places)
{
    for (const auto &place : places)
        session.make_directory(name + "/" + place);
    const UniqueFd directory = session.make_directory(name);
    DetachedMount frame = clone_mount(root, directory, Submounts::leave_out, MountAttributes{true, nullptr});
    attach(root, frame, directory);
    return std::move(frame.fd);
}

} // namespace pi_agent
