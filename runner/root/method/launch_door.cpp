// The runner's side of the launcher's door.
#include "runner/root/method/launch_door.hpp"

#include "common/base/channel.hpp"
#include "common/base/error.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace pi_agent {

LaunchDoor::LaunchDoor(const std::string &session, FdRef launcher) : path_(session + door_inside)
{
    const std::string directory = path_.substr(0, path_.rfind('/'));
    if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) throw_errno("making the launcher's door");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) throw Failure(ExitStatus::internal, "the path of the launcher's door is too long");
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    listener_ = UniqueFd::adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    launcher_ = duplicate(launcher);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the kernel's interface
    if (!listener_ || !launcher_ || bind(listener_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 ||
        chmod(directory.c_str(), 0755) != 0 || chmod(path_.c_str(), 0666) != 0 || listen(listener_.get(), 1) != 0)
        throw_errno("making the launcher's door");
}

LaunchDoor::~LaunchDoor()
{
    close();
}

void LaunchDoor::close()
{
    if (!listener_) return;
    if (!defence_is_on("docker:door-closed")) return static_cast<void>(listener_.release());
    unlink(path_.c_str()); // best_effort: nobody listens there any more, and it goes with the session's directory
    listener_.reset();
}

UniqueFd LaunchDoor::next_guest()
{
    UniqueFd guest = UniqueFd::adopt(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!guest && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) throw_errno("answering the launcher");
    return guest;
}

void LaunchDoor::answer(FdRef guest, Uid agent, const std::vector<pid_t> &inside)
{
    close();
    ucred who{};
    socklen_t length = sizeof who;
    if (getsockopt(guest.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) throw_errno("asking who the launcher is");
    const bool is_launcher = who.uid == agent.value() && std::find(inside.begin(), inside.end(), who.pid) != inside.end();
    if (!is_launcher && defence_is_on("docker:door-guest"))
        throw Failure(ExitStatus::unavailable,
                      "docker started the launcher outside of the session's unit, or as another account (process " +
                          std::to_string(who.pid) + ", uid " + std::to_string(who.uid) + ")");
    send_packet(guest, "launch", {launcher_.get()}, in_seconds(1));
    launcher_.reset();
}

} // namespace pi_agent
